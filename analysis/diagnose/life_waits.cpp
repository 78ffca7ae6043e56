// Finds who has not come to a call that makes or ends a communicator, in which others stand.
#include <algorithm>
#include <set>

#include "diagnose/ends.h"
#include "diagnose/last_calls.h"
#include "diagnose/names.h"
#include "diagnose/standing.h"

namespace tprof::diagnose {
namespace {

using read::LifeCall;
using read::Process;

bool ends_one(const LifeCall& c) {
  return c.name == "ncclCommFinalize" || c.name == "ncclCommDestroy";
}
bool is_of_one_rank(const LifeCall& c) {
  return c.name == "ncclCommAbort" || c.name == "ncclCommRevoke" || c.name == "ncclCommInitAll";
}

// True if all ranks of the communicator that it was given have to come.
bool is_of_given(const LifeCall& c) {
  return c.comm && !c.name.str().starts_with("ncclCommInit");
}

// Calls with one key meet; empty: not known which do.
std::string key_of(const Process& p, const LifeCall& c) {
  if (is_of_one_rank(c)) return "";
  if (!is_of_given(c) && !ends_one(c)) return c.id;
  const read::Comm* comm = read::comm_of(p, c.comm);
  if (comm == nullptr || !comm->known()) return "";
  return std::string(c.name) + ' ' + comm->id.str() + ' ' + std::to_string(c.seq);
}

// True if the rank has come to a call of its communicator that makes a child or ends it.
bool came(const read::Comm& comm, const LifeCall& c) {
  if (c.name == "ncclCommSplit") return comm.splits > c.seq;
  if (c.name == "ncclCommShrink") return comm.shrinks > c.seq;
  if (c.name == "ncclCommGrow") return comm.grows > c.seq;
  if (c.name == "ncclCommFinalize") return !comm.ended.empty();
  return comm.ended == "ncclCommDestroy" || comm.ended == "ncclCommAbort";
}

// Returns the communicator that an init has made in this process; null: none.
const read::Comm* made_in(const Process& p, const LifeCall& c) {
  const auto made = std::ranges::find_if(p.comms, [&](const auto& comm) {
    return comm.second.id.str() == c.id.str() || comm.second.alias == c.id.str();
  });
  return made == p.comms.end() ? nullptr : &made->second;
}

class LifeWaits {
 public:
  LifeWaits(const Case& c, const std::function<bool(const Process&)>& on_its_way, Waits& waits)
      : case_(c), on_its_way_(on_its_way), waits_(waits) {}

  void run() {
    std::map<std::string, std::vector<OpenCall*>> meetings;
    for (OpenCall& call : waits_.open) {
      if (call.life == nullptr) continue;
      const std::string key = key_of(*call.process, *call.life);
      if (!key.empty()) meetings[key].push_back(&call);
    }
    for (const auto& [key, open] : meetings) meet(key, open);
  }

 private:
  // Those that may have to come, with the communicator that they were given, or have made.
  std::vector<Member> expected(const OpenCall& first) const {
    std::vector<Member> all;
    if (is_of_given(*first.life)) {
      if (first.communicator == nullptr) return all;
      for (const Member& m : first.communicator->members) {
        // A communicator is ended together on a host.
        const bool here = m.process->header.boot_id == first.process->header.boot_id;
        if (!ends_one(*first.life) || here) all.push_back(m);
      }
      return all;
    }
    for (const Process* p : case_.job.processes) {
      if (!read::is_child(*p) || waits_.stands_in.contains(p))
        all.push_back({.process = p, .comm = made_in(*p, *first.life)});
    }
    return all;
  }

  std::uint64_t result_of(const Process& p, const std::string& key) const {
    const auto* calls = case_.lines.of<LastCalls>(&p);
    if (calls == nullptr) return 0;
    const auto same = std::ranges::find_if(calls->failed_life,
                                           [&](const LifeCall& c) { return key_of(p, c) == key; });
    return same == calls->failed_life.end() ? 0 : same->result;
  }

  void meet(const std::string& key, const std::vector<OpenCall*>& open) {
    const OpenCall& first = *std::ranges::min_element(
        open, {}, [](const OpenCall* call) { return call->since_ns.value_or(INT64_MAX); })[0];
    const LifeCall& life = *first.life;
    std::set<const Process*> inside;
    for (const OpenCall* call : open) inside.insert(call->process);
    const std::vector<Member> all = expected(first);
    std::uint64_t came_so_far = open.size();
    Missed missed{.communicator = first.communicator, .seq = life.seq, .life = &first};
    Members absent;
    Members refused;
    LifeMeeting meeting;
    for (const Member& m : all) {
      const Member* kept = &waits_.life_members.emplace_back(m);
      if (inside.contains(m.process)) {
        missed.came.push_back(kept);
      } else if (m.comm != nullptr && (!is_of_given(life) || came(*m.comm, life))) {
        ++came_so_far;
        meeting.returned.push_back(m.process);
      } else if (const std::uint64_t result = result_of(*m.process, key); result != 0) {
        refused.push_back(kept);
        missed.refused = result;
      } else {
        absent.push_back(kept);
      }
    }
    const bool of_host = ends_one(life);
    meeting.ranks =
        of_host ? all.size() : static_cast<std::uint64_t>(std::max<std::int64_t>(life.nranks, 0));
    if (meeting.ranks == 0) return;
    meeting.missing = meeting.ranks > came_so_far ? meeting.ranks - came_so_far : 0;
    for (OpenCall* call : open) call->meeting = meeting;
    if (meeting.missing == 0) return;
    missed.missing = meeting.missing;
    missed.absent = refused.empty() ? who_it_may_be(absent, meeting.missing) : refused;
    if (!missed.absent.empty()) add(std::move(missed));
  }

  // If they are more ranks than are missing, those that wait for others are not looked for first.
  Members who_it_may_be(Members absent, std::uint64_t missing) const {
    std::erase_if(absent, [&](const Member* m) { return on_its_way_(*m->process); });
    if (absent.size() <= missing) return absent;
    std::erase_if(absent, [&](const Member* m) {
      return waits_.on.contains(m->process) || waits_.stands_in.contains(m->process);
    });
    return absent.size() < missing ? Members() : absent;
  }

  void add(Missed missed) {
    for (const Member* m : missed.came) waits_.on.try_emplace(m->process, waits_.missed.size());
    waits_.missed.push_back(std::move(missed));
  }

  const Case& case_;
  const std::function<bool(const Process&)>& on_its_way_;
  Waits& waits_;
};

}  // namespace

std::string communicator_of(const Process& p, const LifeCall& c) {
  const read::Comm* comm = read::comm_of(p, c.comm);
  return comm != nullptr ? comm->id.str() : c.id.str();
}

void add_life_waits(const Case& c, const std::function<bool(const Process&)>& on_its_way,
                    Waits& waits) {
  LifeWaits(c, on_its_way, waits).run();
}

Fact not_come(const Missed& m, const Processes& who, Fact then) {
  const OpenCall& call = *m.life;
  const Processes seen = select(who, [](const Process& p) { return p.snapshot; });
  const bool which = m.absent.size() <= m.missing;
  return {m.refused != 0 ? Say::got_back
          : which        ? Say::not_come
                         : Say::some_not_come,
          {{"who", who},
           {"until", seen.empty() ? std::nullopt : std::optional(Time{oldest_ns(seen)})},
           {"call", fact_of(call)},
           {"came", who_of(m.came)},
           {"since", call.since_ns ? std::optional(Time{*call.since_ns}) : std::nullopt},
           {"missing", m.missing},
           {"error", nccl_error(m.refused)},
           {"then", std::move(then)}}};
}

}  // namespace tprof::diagnose
