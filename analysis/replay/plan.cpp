#include "replay/plan.h"

#include <algorithm>
#include <utility>

#include "replay/communicator.h"

namespace tprof::replay {
namespace {

using read::Amounts;
using read::Process;

std::int64_t size_of(const Process& p, std::int64_t number) {
  const read::Comm* comm = read::comm_of(p, number);
  return comm == nullptr ? 0 : comm->nranks;
}

Why why(Trouble trouble) {
  switch (trouble) {
    case Trouble::type:
      return Why::type;
    case Trouble::size:
      return Why::size;
    case Trouble::once:
      return Why::once;
    default:
      return Why::program;
  }
}

class Planner {
 public:
  void add(const Process& p, const read::Rows& rows, const MadeCalls* lines) {
    leave_what_has_no_line(p, rows, lines);
    if (lines == nullptr) return;
    for (const auto& [kind, amounts] : lines->others) leave(Why::many, p, kind, amounts);
    for (const auto& [made, amounts] : lines->made) add(p, made, amounts);
  }

  Plan finish() {
    for (auto& [id, comm] : communicators_) {
      for (const auto& [call, amounts] : comm.take_common()) {
        Run& run = runs_[call];
        run.call = call;
        run.amounts += amounts;
        ++run.communicators;
        run.hosts = std::max(run.hosts, comm.hosts());
      }
      comm.each([&](const Call& call, const Amounts& amounts) {
        leave(is_point_to_point(call.function) ? Why::ring : Why::ranks, call, amounts);
      });
    }
    for (auto& [call, run] : runs_) add(run);
    return std::move(plan_);
  }

 private:
  void leave(Why why, const Call& call, const Amounts& amounts) {
    if (amounts.calls != 0) plan_.left[{why, call.function, call.nranks, call.dtype}] += amounts;
  }
  void leave(Why why, const Process& p, const Kind& kind, const Amounts& amounts) {
    Call call;
    call.function = kind.function;
    call.dtype = kind.dtype;
    call.nranks = size_of(p, kind.comm);
    leave(why, call, amounts);
  }

  void leave_what_has_no_line(const Process& p, const read::Rows& rows, const MadeCalls* lines) {
    std::map<Kind, Amounts> direct;
    for (const read::Row& row : rows) {
      if (!row.comm || row.mode == Mode::captured) continue;
      const Kind kind{*row.comm, row.name, row.dtype};
      if (row.mode == Mode::replayed) {
        leave(Why::graph, p, kind, row.amounts);
      } else {
        direct[kind] += row.amounts;
      }
    }
    for (const auto& [kind, amounts] : direct) {
      const bool any = lines != nullptr && lines->lines.contains(kind);
      leave(Why::no_line, p, kind, any ? less(amounts, lines->lines.at(kind)) : amounts);
    }
  }

  void add(const Process& p, const Made& made, const Amounts& amounts) {
    const read::Comm* comm = read::comm_of(p, made.comm);
    Call call = made.call;
    call.nranks = size_of(p, made.comm);
    if (!is_point_to_point(call.function) && program_for(call.function).empty()) {
      return leave(Why::program, call, amounts);
    }
    if (comm == nullptr || !comm->known() || comm->rank < 0 || comm->rank >= comm->nranks) {
      return leave(Why::communicator, call, amounts);
    }
    communicators_.try_emplace({comm->id, comm->nranks}, comm->nranks)
        .first->second.add(comm->rank, p.header.host, call, amounts);
  }

  void add(Run& run) {
    const bool ring = run.call.function == "ncclSend";
    run.times = run.amounts.calls / static_cast<std::uint64_t>(run.call.nranks) / (ring ? 2 : 1);
    const Trouble trouble = replay::trouble(run.call, run.times);
    if (trouble == Trouble::none) return plan_.runs.push_back(run);
    if (!ring) return leave(why(trouble), run.call, run.amounts);
    for (const char* function : {"ncclSend", "ncclRecv"}) {
      run.call.function = function;
      leave(why(trouble), run.call, some_of(run.amounts, run.amounts.calls / 2));
    }
  }

  Plan plan_;
  std::map<std::pair<std::string, std::int64_t>, Communicator> communicators_;
  std::map<Call, Run> runs_;
};

}  // namespace

Plan plan(const run::Lines& lines) {
  const auto ranks = lines.each<MadeCalls>();
  Planner planner;
  for (const Process* p : lines.job().processes) planner.add(*p, lines.rows(*p), ranks.of(p));
  Plan plan = planner.finish();
  plan.unreadable = lines.unreadable();
  return plan;
}

}  // namespace tprof::replay
