#include "report/memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "diagnose/names.h"
#include "interpose/format/memory.h"
#include "report/json.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using stats::MemoryOfProcess;
using text::Table;

using enum Table::Align;

std::string whose(const MemoryOfProcess& m) {
  std::string name = diagnose::name_of_rank(*m.process);
  if (m.use.device) name += fmt::format(", GPU {}", *m.use.device);
  return name;
}

}  // namespace

std::string memory_table(const stats::Memory& memory) {
  if (memory.uses.empty()) return "";
  Table table({{"memory", left},
               {"places", right},
               {"at the end", right},
               {"largest peak", right},
               {"of", left},
               {"least peak", right},
               {"of", left}});
  for (const std::string_view kind : kMemoryKinds) {
    std::uint64_t places = 0;
    std::uint64_t bytes = 0;
    const MemoryOfProcess* most = nullptr;
    const MemoryOfProcess* least = nullptr;
    for (const MemoryOfProcess& m : memory.uses) {
      if (m.use.kind != kind) continue;
      ++places;
      bytes = read::saturated_sum(bytes, m.use.bytes);
      if (most == nullptr || m.use.peak > most->use.peak) most = &m;
      if (least == nullptr || m.use.peak < least->use.peak) least = &m;
    }
    if (most == nullptr) continue;
    table.row({std::string(kind), text::thousands(places), text::bytes(bytes),
               text::bytes(most->use.peak), whose(*most), text::bytes(least->use.peak),
               whose(*least)});
  }
  return table.str() +
         "  as it was asked for; at the end: of all together. The device's granularity, CUDA's own "
         "and what shares a pool come on top.\n";
}

nlohmann::ordered_json to_json(const stats::Memory& memory) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& [process, use] : memory.uses) {
    const std::optional<std::int64_t>& rank = process->header.rank;
    Json j = {{"rank", rank ? Json(*rank) : Json()},
              {"pid", process->header.pid},
              {"kind", use.kind},
              {"device", use.device ? Json(*use.device) : Json()},
              {"bytes", use.bytes},
              {"peak", use.peak}};
    all.push_back(std::move(j));
  }
  return all;
}

}  // namespace tprof::report
