#include "report/views.h"

#include <fmt/format.h>

#include <algorithm>

#include "diagnose/names.h"
#include "interpose/format/memory.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using stats::MemoryOfProcess;

std::string whose(const MemoryOfProcess& m) {
  std::string name = diagnose::name_of_rank(*m.process);
  if (m.use.device) name += fmt::format(", GPU {}", *m.use.device);
  return name;
}

// All places of one kind.
struct Kind {
  std::string name;
  std::uint64_t places = 0;
  std::uint64_t bytes = 0;
  const MemoryOfProcess* most = nullptr;
  const MemoryOfProcess* least = nullptr;
};

std::vector<Kind> kinds_of(const stats::Memory& memory) {
  std::vector<Kind> all;
  for (const std::string_view name : kMemoryKinds) {
    Kind k = {std::string(name)};
    for (const MemoryOfProcess& m : memory.uses) {
      if (m.use.kind != name) continue;
      ++k.places;
      k.bytes = read::saturated_sum(k.bytes, m.use.bytes);
      if (k.most == nullptr || m.use.peak > k.most->use.peak) k.most = &m;
      if (k.least == nullptr || m.use.peak < k.least->use.peak) k.least = &m;
    }
    if (k.places != 0) all.push_back(k);
  }
  return all;
}

std::vector<Column<Kind>> kind_columns() {
  return {{"memory", nullptr, Unit::text, &Kind::name},
          {"places", nullptr, Unit::count, &Kind::places},
          {"at the end", nullptr, Unit::bytes, &Kind::bytes},
          {"largest peak", nullptr, Unit::bytes, [](const Kind& k) { return k.most->use.peak; }},
          {"of", nullptr, Unit::text, [](const Kind& k) { return whose(*k.most); }},
          {"least peak", nullptr, Unit::bytes, [](const Kind& k) { return k.least->use.peak; }},
          {"of", nullptr, Unit::text, [](const Kind& k) { return whose(*k.least); }}};
}

// Programs get each place by itself.
std::vector<Column<MemoryOfProcess>> place_columns() {
  using Row = MemoryOfProcess;
  return {{nullptr, "rank", Unit::number,
           [](const Row& m) { return or_unknown(m.process->header.rank); }},
          {nullptr, "pid", Unit::number, [](const Row& m) { return m.process->header.pid; }},
          {nullptr, "kind", Unit::text, [](const Row& m) { return m.use.kind; }},
          {nullptr, "device", Unit::number, [](const Row& m) { return or_unknown(m.use.device); }},
          {nullptr, "bytes", Unit::bytes, [](const Row& m) { return m.use.bytes; }},
          {nullptr, "peak", Unit::bytes, [](const Row& m) { return m.use.peak; }}};
}

}  // namespace

Section section_of(const stats::Memory& memory, For who) {
  return {
      .title = "Memory that the program allocated",
      .table = who == For::people ? sheet(kind_columns(), kinds_of(memory), who)
                                  : sheet(place_columns(), memory.uses, who),
      .notes =
          "  as it was asked for; at the end: of all together. The device's granularity, CUDA's "
          "own and what shares a pool come on top.\n",
      .at = ""};
}

}  // namespace tprof::report
