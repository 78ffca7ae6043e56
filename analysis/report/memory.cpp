#include "report/views.h"

#include <fmt/format.h>

#include <algorithm>

#include "check/names.h"
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

// People see all places of one kind together.
Sheet by_kind(const stats::Memory& memory) {
  Sheet all{.heads = {{"memory", nullptr, Unit::text},
                      {"places", nullptr, Unit::count},
                      {"at the end", nullptr, Unit::bytes},
                      {"largest peak", nullptr, Unit::bytes},
                      {"of", nullptr, Unit::text},
                      {"least peak", nullptr, Unit::bytes},
                      {"of", nullptr, Unit::text}}};
  for (const std::string_view name : kMemoryKinds) {
    std::uint64_t bytes = 0;
    std::vector<const MemoryOfProcess*> of;
    for (const MemoryOfProcess& m : memory.uses) {
      if (m.use.kind != name) continue;
      of.push_back(&m);
      bytes = read::saturated_sum(bytes, m.use.bytes);
    }
    if (of.empty()) continue;
    const auto peak = [](const MemoryOfProcess* m) { return m->use.peak; };
    const MemoryOfProcess& most = **std::ranges::max_element(of, {}, peak);
    const MemoryOfProcess& least = **std::ranges::min_element(of, {}, peak);
    all.rows.push_back(
        {name, of.size(), bytes, most.use.peak, whose(most), least.use.peak, whose(least)});
  }
  return all;
}

// Programs get each place by itself.
std::vector<Column<MemoryOfProcess>> place_columns() {
  using Row = MemoryOfProcess;
  return {{nullptr, "rank", Unit::text, &Row::process},
          {nullptr, "pid", Unit::number, [](const Row& m) { return m.process->header.pid; }},
          {nullptr, "kind", Unit::text, [](const Row& m) { return m.use.kind; }},
          {nullptr, "device", Unit::number, [](const Row& m) { return m.use.device; }},
          {nullptr, "bytes", Unit::bytes, [](const Row& m) { return m.use.bytes; }},
          {nullptr, "peak", Unit::bytes, [](const Row& m) { return m.use.peak; }}};
}

}  // namespace

Section section_of(const stats::Memory& memory, For who) {
  return {.title = "Memory that the program allocated",
          .table = who == For::people ? by_kind(memory) : sheet(place_columns(), memory.uses, who),
          .notes = {"as it was asked for; at the end: of all together. The device's granularity, "
                    "CUDA's own and what shares a pool come on top."},
          .at = ""};
}

}  // namespace tprof::report
