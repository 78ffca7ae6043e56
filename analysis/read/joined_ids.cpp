#include "read/joined_ids.h"

#include <charconv>
#include <cstdio>
#include <map>
#include <optional>

#include "interpose/format/ledger.h"

namespace tprof::read {
namespace {

std::optional<std::uint64_t> hex(const std::string& text) {
  std::uint64_t v = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, v, 16);
  return error == std::errc() && at == end ? std::optional(v) : std::nullopt;
}

std::string id_of_child(const std::string& parent, const std::string& birth,
                        const std::string& otherwise) {
  const auto p = hex(parent);
  const auto b = hex(birth);
  if (!p || !b) return otherwise;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(mix64(*p ^ *b)));
  return text;
}

using Ids = std::map<std::int64_t, std::string>;  // by the process's number
using Aliases = std::map<std::string, std::string>;

// The ids of a process's communicators, after those that other ids stand for.
Ids renamed(const Process& p, const Aliases& aliases) {
  Ids ids;
  for (const auto& [number, comm] : p.comms) {
    std::string& id = ids[number] = comm.id;
    if (const auto alias = aliases.find(comm.id); alias != aliases.end()) {
      id = alias->second;
      continue;
    }
    const auto parent = p.comms.find(comm.parent.value_or(0));
    if (parent == p.comms.end() || comm.birth.empty() || parent->first >= number) continue;
    const std::string& name = ids.at(parent->first);
    if (name != parent->second.id) id = id_of_child(name, comm.birth, comm.id);
  }
  return ids;
}

template <typename F>
void each_process(std::vector<Trace>& traces, const F& f) {
  for (Trace& trace : traces) {
    for (Process& p : trace.processes) f(p);
  }
}

}  // namespace

void join_ids(std::vector<Trace>& traces) {
  Aliases aliases;
  // What was grown may be grown again by ranks that are new: one generation a turn.
  constexpr int kMostGenerations = 64;
  for (int turn = 0; turn < kMostGenerations; ++turn) {
    Aliases found;
    each_process(traces, [&](const Process& p) {
      Ids ids;
      for (const auto& [number, comm] : p.comms) {
        if (comm.alias.empty() || !comm.known()) continue;
        if (ids.empty()) ids = renamed(p, aliases);
        found.emplace(comm.alias, ids.at(number));
      }
    });
    if (found == aliases) break;
    aliases = std::move(found);
  }
  if (aliases.empty()) return;
  each_process(traces, [&](Process& p) {
    for (const auto& [number, id] : renamed(p, aliases)) p.comms.at(number).id = id;
  });
}

}  // namespace tprof::read
