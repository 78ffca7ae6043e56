// Finds ranks that missed a call that makes or ends a communicator, while others are inside it, and
// calls that NCCL refused.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "check/names.h"
#include "check/waits.h"

namespace tprof::check {

namespace {

using read::LifeCall;
using read::Process;

bool ends_one(const LifeCall& c) {
  return c.name == "ncclCommFinalize" || c.name == "ncclCommDestroy";
}

// True if all ranks of its communicator have to make the call.
bool is_of_given(const LifeCall& c) {
  return c.comm && !c.name.str().starts_with("ncclCommInit");
}

// Calls with the same key meet; empty: not known.
std::string key_of(const Process& p, const LifeCall& c) {
  constexpr std::string_view kOfOneRank[] = {"ncclCommAbort", "ncclCommRevoke", "ncclCommInitAll"};
  if (std::ranges::find(kOfOneRank, std::string_view(c.name)) != std::end(kOfOneRank)) return "";
  if (!is_of_given(c) && !ends_one(c)) return c.id;
  const read::Comm* comm = read::comm_of(p, c.comm);
  if (comm == nullptr || !comm->known()) return "";
  return std::string(c.name) + ' ' + comm->id.str() + ' ' + std::to_string(c.seq);
}

// True if the rank made the call. `comm`: the communicator that the call takes or makes.
bool came(const read::Comm* comm, const LifeCall& c) {
  if (comm == nullptr || !is_of_given(c)) return comm != nullptr;
  if (c.name == "ncclCommSplit") return comm->splits > c.seq;
  if (c.name == "ncclCommShrink") return comm->shrinks > c.seq;
  if (c.name == "ncclCommGrow") return comm->grows > c.seq;
  if (c.name == "ncclCommFinalize") return !comm->ended.empty();
  return comm->ended == "ncclCommDestroy" || comm->ended == "ncclCommAbort";
}

using Expected = std::vector<std::pair<const Process*, const read::Comm*>>;

// Returns the ranks that may have to make the call, each with its communicator.
Expected expected(const OpenCall& call, const Case& c, const Waits& waits) {
  const LifeCall& life = *call.life;
  Expected all;
  if (is_of_given(life)) {
    if (call.communicator == nullptr) return all;
    for (const Member& m : call.communicator->members) {
      // Only ranks of one host end a communicator together.
      const bool here = m.process->header.boot_id == call.process->header.boot_id;
      if (!ends_one(life) || here) all.emplace_back(m.process, m.comm);
    }
    return all;
  }
  for (const Process* p : c.job.processes) {
    if (read::is_child(*p) && !waits.stands_in.contains(p)) continue;
    const auto made = std::ranges::find_if(p->comms, [&](const auto& comm) {
      return comm.second.id == life.id || comm.second.alias == life.id.str();
    });
    all.emplace_back(p, made == p->comms.end() ? nullptr : &made->second);
  }
  return all;
}

// Returns the error that NCCL returned to the rank; 0: the rank did not call, or nothing is known.
std::uint64_t result_of(const Process& p, const std::string& key, const Case& c) {
  const auto& failed = c.calls(p).failed_life;
  const auto same =
      std::ranges::find_if(failed, [&](const LifeCall& l) { return key_of(p, l) == key; });
  return same == failed.end() ? 0 : same->result;
}

// Returns the ranks that may be missing. If there are too many, leaves out those that wait for
// others.
Processes who_it_may_be(Processes absent, std::uint64_t missing, const Case& c,
                        const Waits& waits) {
  std::erase_if(absent, [&](const Process* p) { return on_its_way(*p, c); });
  if (absent.size() <= missing) return absent;
  std::erase_if(absent, [&](const Process* p) {
    return waits.on.contains(p) || waits.stands_in.contains(p);
  });
  return absent.size() < missing ? Processes() : absent;
}

void meet(const std::string& key, const std::vector<OpenCall*>& open, const Case& c, Waits& waits) {
  const OpenCall& first = **std::ranges::min_element(
      open, {}, [](const OpenCall* call) { return call->since_ns.value_or(INT64_MAX); });
  Missed m{.communicator = first.communicator, .open = &first};
  std::set<const Process*> inside;
  for (const OpenCall* call : open) inside.insert(call->process);
  Processes absent;
  Processes refused;
  const Expected all = expected(first, c, waits);
  for (const auto& [p, comm] : all) {
    if (inside.contains(p)) {
      m.came.push_back(p);
    } else if (came(comm, *first.life)) {
      m.returned.push_back(p);
    } else if (const std::uint64_t result = result_of(*p, key, c); result != 0) {
      refused.push_back(p);
      m.refused = result;
    } else {
      absent.push_back(p);
    }
  }
  const auto nranks = static_cast<std::uint64_t>(std::max<std::int64_t>(first.life->nranks, 0));
  m.ranks = ends_one(*first.life) ? all.size() : nranks;
  if (m.ranks == 0) return;
  m.missing = m.ranks - std::min(m.ranks, open.size() + m.returned.size());
  if (m.missing != 0) {
    m.absent = refused.empty() ? who_it_may_be(absent, m.missing, c, waits) : refused;
  }
  const Missed& meeting = waits.add(std::move(m));
  for (OpenCall* call : open) call->meeting = &meeting;
}

void refused_life(const Case& c, Findings& found) {
  struct Refused {
    Processes who{};
    std::int64_t at_ns = 0;
  };
  std::map<std::tuple<std::string, std::string, std::uint64_t>, Refused> all;
  for (const Process* p : c.job.processes) {
    for (const LifeCall& call : c.calls(*p).failed_life) {
      Refused& of = all[{call.name, communicator_of(*p, call), call.result}];
      if (of.who.empty() || of.who.back() != p) of.who.push_back(p);
      of.at_ns = p->header.base_time_ns + call.ts_ns + call.dur_ns;
    }
  }
  for (const auto& [key, refused] : all) {
    const auto& [function, communicator, result] = key;
    Finding& f =
        add(found, Kind::refused, refused.who,
            {{"function", function}, {"error", nccl_error(result)}, {"at", Time{refused.at_ns}}});
    if (!communicator.empty()) set(f.text, {"communicator", communicator});
    f.communicator = communicator;
    f.function = function;
  }
}

}  // namespace

void add_life_waits(const Case& c, Waits& waits) {
  std::map<std::string, std::vector<OpenCall*>> meetings;
  for (OpenCall& call : waits.open) {
    if (call.life == nullptr) continue;
    const std::string key = key_of(*call.process, *call.life);
    if (!key.empty()) meetings[key].push_back(&call);
  }
  for (const auto& [key, open] : meetings) meet(key, open, c, waits);
}

std::string communicator_of(const Process& p, const LifeCall& c) {
  const read::Comm* comm = read::comm_of(p, c.comm);
  return comm != nullptr ? comm->id.str() : c.id.str();
}

extern const Diagnosis kRefusedLife{kCheck, refused_life};

}  // namespace tprof::check
