// Finds ranks whose device did not end a collective that the devices of others ended. These ended
// it with what that device had sent, so nothing that its host, or another rank, called or did not
// call is why.
#include <algorithm>
#include <set>

#include "diagnose/device_waits.h"
#include "diagnose/last_calls.h"
#include "diagnose/mismatch.h"

namespace tprof::diagnose {
namespace {

using read::Process;

// A collective that its host had called and that the device of `member` did not end.
struct NotEnded {
  const Member* member = nullptr;
  const Communicator* communicator = nullptr;
  const Operation* call = nullptr;
  Processes others{};  // whose devices did
};

// Adds those of a communicator.
void find(const Communicator& comm, const Case& c, std::vector<NotEnded>& all) {
  const auto through = [&](const Member& m) -> std::uint64_t {
    const auto* device = c.lines.of<Operations>(m.process);
    if (device == nullptr) return 0;
    const auto behind = device->through.find(m.comm->comm);
    return behind == device->through.end() ? 0 : behind->second;
  };
  std::uint64_t most = 0;
  for (const Member& m : comm.members) most = std::max(most, through(m));
  for (const Member& m : comm.members) {
    if (through(m) == most) continue;
    const auto ended = ended_by(m, c);
    if (!ended || !m.did(*ended)) continue;
    const Operation* call = c.lines.of<Operations>(m.process)->find({m.comm->comm}, *ended);
    // NCCL does nothing for calls without data, so no device ends them.
    if (call == nullptr || !call->all_wait() || (call->bytes == 0 && !m.dumped())) continue;
    NotEnded one{&m, &comm, call, {}};
    for (const Member& other : comm.members) {
      const auto* device = c.lines.of<Operations>(other.process);
      if (device != nullptr && device->is_through(other.comm->comm, *ended)) {
        one.others.push_back(other.process);
      }
    }
    all.push_back(std::move(one));
  }
}

void lost_devices(const Case& c, Findings& found) {
  const std::set<std::string> different = diagnose::different(found);
  std::vector<NotEnded> all;
  for (const Communicator& comm : c.communicators) {
    if (!different.contains(comm.id)) find(comm, c, all);
  }
  if (all.empty()) return;
  std::ranges::stable_sort(all, {}, [](const NotEnded& one) {
    return one.member->process->header.base_time_ns + one.call->ts_ns;
  });
  Processes who;
  Facts evidence;
  for (const NotEnded& one : all) {
    const Process* p = one.member->process;
    if (std::ranges::find(who, p) != who.end()) continue;
    who.push_back(p);
    evidence.push_back({Say::did_not_end,
                        {{"who", p},
                         {"function", one.call->function},
                         {"seq", one.call->seq},
                         {"communicator", one.communicator->id},
                         {"others", one.others}}});
  }
  shorten(evidence, 8);
  Finding& f = add(found, Kind::lost_device, who);
  f.communicator = all[0].communicator->id;
  f.seq = all[0].call->seq;
  f.function = all[0].call->function;
  f.evidence = std::move(evidence);
}

}  // namespace

extern const Diagnosis kLostDevice{kCheck, lost_devices, true};

}  // namespace tprof::diagnose
