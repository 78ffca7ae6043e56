#include "replay/plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "read/events.h"

namespace tprof::replay {
namespace {

using read::Process;

Moved moved_by(const Call& call, std::uint64_t times) {
  return {times, call.elements * times, call.bytes * times};
}

struct Times {
  std::uint64_t n = 0;
  std::int64_t first_ns = INT64_MAX;
};

// How often one rank made each call that has a line, by communicator. For sends and receives
// `root` is the other end.
struct MadeCalls {
  explicit MadeCalls(const Process& /*its lines are enough*/) {}
  void call(const read::Event& e) {
    if (e.unfinished || e.captured || e.failed || !e.comm || !e.chosen) return;
    std::pair<std::int64_t, Call> key{*e.comm, {}};
    key.second = {.function = e.name,
                  .dtype = e.dtype,
                  .count = e.count,
                  .reduce = e.reduce,
                  .root = e.peer.value_or(-1),
                  .bytes = e.bytes,
                  .elements = read::amounts_of(e).elements};
    auto known = made.find(key);
    if (known == made.end() && made.size() < kMost) {
      known = made.emplace(std::move(key), Times{}).first;
    }
    if (known == made.end()) return;
    ++known->second.n;
    known->second.first_ns = std::min(known->second.first_ns, e.ts_ns);
  }

  static constexpr std::size_t kMost = 65536;  // others are left as if they had no line
  std::map<std::pair<std::int64_t, Call>, Times> made;
};

struct Communicator {
  std::set<std::string> hosts{};
  std::map<Call, std::map<std::int64_t, std::uint64_t>> calls{};  // how often, by rank
  std::map<Call, std::int64_t> first_ns{};
};

class Planner {
 public:
  void add(const Process& p, const read::Rows& rows, const MadeCalls* lines) {
    std::map<std::tuple<std::int64_t, std::string, std::string>, Moved> unseen;
    for (const read::Row& row : rows) {
      if (!row.comm || row.mode == Mode::captured) continue;
      const Moved moved{row.amounts.calls, row.amounts.elements, row.amounts.bytes};
      if (row.mode == Mode::replayed) {
        leave(Why::graph, row.name, row.dtype, nranks_of(p, *row.comm), moved);
      } else {
        unseen[{*row.comm, row.name, row.dtype}] += moved;
      }
    }
    if (lines != nullptr) {
      for (const auto& [key, times] : lines->made) {
        const auto& [comm, call] = key;
        unseen[{comm, call.function, call.dtype}] -= moved_by(call, times.n);
        add(p, comm, call, times);
      }
    }
    for (const auto& [kind, moved] : unseen) {
      const auto& [comm, function, dtype] = kind;
      leave(Why::no_line, function, dtype, nranks_of(p, comm), moved);
    }
  }

  Plan finish() {
    for (auto& [id, comm] : communicators_) {
      for (auto& [call, ranks] : comm.calls) take_common(id.second, comm, call, ranks);
      for (const auto& [call, ranks] : comm.calls) {
        const bool message = call.is_ring() || call.function == "ncclRecv";
        for (const auto& [rank, times] : ranks) {
          leave(message ? Why::ring : Why::ranks, call, times);
        }
      }
    }
    for (auto& [call, run] : runs_) {
      const auto why = trouble(call, run.times);
      if (!why) {
        plan_.runs.push_back(run);
        continue;
      }
      Call left = call;
      for (const char* function : {call.function.c_str(), "ncclRecv"}) {
        left.function = function;
        leave(*why, left, run.times * static_cast<std::uint64_t>(call.nranks));
        if (!call.is_ring()) break;
      }
    }
    std::ranges::stable_sort(plan_.runs, {}, &Run::first_ns);
    return std::move(plan_);
  }

 private:
  void leave(Why why, const std::string& function, const std::string& dtype, std::int64_t nranks,
             const Moved& moved) {
    if (moved.calls != 0) plan_.left[{why, function, nranks, dtype}] += moved;
  }
  void leave(Why why, const Call& call, std::uint64_t times) {
    leave(why, call.function, call.dtype, call.nranks, moved_by(call, times));
  }
  static std::int64_t nranks_of(const Process& p, std::int64_t number) {
    const read::Comm* comm = read::comm_of(p, number);
    return comm == nullptr ? 0 : comm->nranks;
  }

  void add(const Process& p, std::int64_t number, Call call, const Times& made) {
    const std::uint64_t times = made.n;
    const read::Comm* comm = read::comm_of(p, number);
    call.nranks = nranks_of(p, number);
    const bool receives = call.function == "ncclRecv";
    if (!receives && program_for(call.function).empty()) return leave(Why::program, call, times);
    if (comm == nullptr || !comm->known() || comm->rank < 0 || comm->rank >= comm->nranks) {
      return leave(Why::communicator, call, times);
    }
    if (receives || call.is_ring()) {
      const std::int64_t next = (receives ? call.root : comm->rank) + 1;
      if (next % comm->nranks != (receives ? comm->rank : call.root)) {
        return leave(Why::ring, call, times);
      }
      call.root = -1;
    }
    Communicator& to = communicators_[{comm->id, comm->nranks}];
    to.hosts.insert(p.header.host);
    to.calls[call][comm->rank] += times;
    std::int64_t& first_ns = to.first_ns.try_emplace(call, made.first_ns).first->second;
    first_ns = std::min(first_ns, made.first_ns);
  }

  // Takes what a program could make: a call as often as the rank that made it least. A receive goes
  // with its send.
  void take_common(std::int64_t nranks, Communicator& comm, const Call& call,
                   std::map<std::int64_t, std::uint64_t>& ranks) {
    if (call.function == "ncclRecv") return;
    std::vector ends{&ranks};
    Call receive = call;
    receive.function = "ncclRecv";
    if (call.is_ring()) ends.push_back(&comm.calls[receive]);
    std::uint64_t least = UINT64_MAX;
    for (const auto* end : ends) {
      if (!std::cmp_equal(end->size(), nranks)) return;
      for (const auto& [rank, times] : *end) least = std::min(least, times);
    }
    for (auto* end : ends) {
      for (auto& [rank, times] : *end) times -= least;
    }
    if (least == 0) return;
    Run& run = runs_[call];
    run.call = call;
    run.times += least;
    ++run.communicators;
    run.hosts = std::max(run.hosts, comm.hosts.size());
    run.first_ns = std::min(run.first_ns, comm.first_ns[call]);
  }

  Plan plan_;
  std::map<std::pair<std::string, std::int64_t>, Communicator> communicators_;  // by id and size
  std::map<Call, Run> runs_;
};

}  // namespace

Moved& Moved::operator+=(const Moved& other) {
  calls = read::saturated_sum(calls, other.calls);
  elements = read::saturated_sum(elements, other.elements);
  bytes = read::saturated_sum(bytes, other.bytes);
  return *this;
}

Moved& Moved::operator-=(const Moved& other) {
  calls -= std::min(calls, other.calls);
  elements -= std::min(elements, other.elements);
  bytes -= std::min(bytes, other.bytes);
  return *this;
}

Moved Run::moved() const {
  return moved_by(call, times * static_cast<std::uint64_t>(call.nranks) * (call.is_ring() ? 2 : 1));
}

Plan plan(const run::Lines& lines) {
  const auto ranks = lines.each<MadeCalls>();
  Planner planner;
  for (const Process* p : lines.job().processes) planner.add(*p, lines.rows(*p), ranks.of(p));
  Plan plan = planner.finish();
  plan.unreadable = lines.unreadable();
  return plan;
}

}  // namespace tprof::replay
