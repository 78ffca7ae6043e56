#include "job/jobs.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "interpose/format/ledger.h"

namespace tprof::job {
namespace {

using read::Comm;
using read::Process;

std::uint64_t hex(const std::string& text) {
  std::uint64_t v = 0;
  std::from_chars(text.data(), text.data() + text.size(), v, 16);
  return v;
}

struct Handle {
  const Process* process;
  const Comm* comm;
};
using Roots = std::map<std::string_view, Handle>;  // the one that knows both ids, by alias

// A grown communicator may be split and grown again, by a root that was new itself. So its id
// follows from that of the root or of the parent, and so on. `generations` ends a cycle in a
// damaged file.
std::string joined_id(const Roots& roots, const Handle& handle, int generations = 256) {
  const Comm& comm = *handle.comm;
  if (generations == 0) return comm.id;
  const auto root = roots.find(comm.id);
  if (root != roots.end()) return joined_id(roots, root->second, generations - 1);
  const auto parent = handle.process->comms.find(comm.parent.value_or(0));
  if (comm.birth.empty() || parent == handle.process->comms.end()) return comm.id;
  const std::string id = joined_id(roots, {handle.process, &parent->second}, generations - 1);
  return id == parent->second.id ? comm.id.str()
                                 : fmt::format("{:016x}", mix64(hex(id) ^ hex(comm.birth)));
}

}  // namespace

void join_ids(std::vector<read::Trace>& traces) {
  Roots roots;
  std::vector<std::pair<Comm*, std::string>> joined;
  for (read::Trace& trace : traces) {
    for (Process& p : trace.processes) {
      for (auto& [number, comm] : p.comms) {
        if (!comm.alias.empty() && comm.known()) roots.try_emplace(comm.alias, Handle{&p, &comm});
      }
    }
  }
  if (roots.empty()) return;
  for (read::Trace& trace : traces) {
    for (Process& p : trace.processes) {
      for (auto& [number, comm] : p.comms)
        joined.emplace_back(&comm, joined_id(roots, {&p, &comm}));
    }
  }
  for (auto& [comm, id] : joined) comm->id = std::move(id);
}

}  // namespace tprof::job
