#include "replay/replay.h"

#include <fmt/format.h>
#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "check/names.h"
#include "read/events.h"
#include "report/findings.h"
#include "text/text.h"

namespace tprof::replay {

namespace {

struct Program {
  std::string_view function;
  std::string_view name;
  bool parts = false;  // the size is for all ranks together, and each rank's part is rounded down
};

constexpr Program kPrograms[] = {
    {"ncclAllGather", "all_gather_perf", true},
    {"ncclReduceScatter", "reduce_scatter_perf", true},
    {"ncclAllReduce", "all_reduce_perf"},
    {"ncclBroadcast", "broadcast_perf"},
    {"ncclBcast", "broadcast_perf"},
    {"ncclReduce", "reduce_perf"},
    {"ncclAlltoAll", "alltoall_perf", true},
    {"ncclGather", "gather_perf", true},
    {"ncclScatter", "scatter_perf", true},
    {"ncclSend", "sendrecv_perf"},
};

struct Name {
  std::string_view ours;
  std::string_view theirs;
};

constexpr Name kTypes[] = {
    {"int8", "int8"},         {"uint8", "uint8"},       {"int32", "int32"},
    {"uint32", "uint32"},     {"int64", "int64"},       {"uint64", "uint64"},
    {"float16", "half"},      {"float32", "float"},     {"float64", "double"},
    {"bfloat16", "bfloat16"}, {"float8e4m3", "f8e4m3"}, {"float8e5m2", "f8e5m2"},
};
// A custom reduction can only be made with ncclRedOpCreatePreMulSum.
constexpr Name kReductions[] = {{"sum", "sum"}, {"prod", "prod"}, {"max", "max"},
                                {"min", "min"}, {"avg", "avg"},   {"custom", "mulsum"}};

template <std::size_t N>
std::string_view theirs(const Name (&names)[N], std::string_view ours) {
  const auto* found = std::ranges::find(names, ours, &Name::ours);
  return found == std::end(names) ? std::string_view() : found->theirs;
}

const Program* program_of(std::string_view function) {
  const auto* found = std::ranges::find(kPrograms, function, &Program::function);
  return found == std::end(kPrograms) ? nullptr : found;
}

constexpr std::uint64_t kPartBytes = 16;  // a rank's part is a multiple of this

// Returns the program for the function; empty if there is none.
std::string_view program_for(std::string_view function) {
  const Program* program = program_of(function);
  return program == nullptr ? std::string_view() : program->name;
}

// Returns what the program calls: the function itself, except for ncclBcast and sendrecv_perf.
std::vector<std::string> functions_of(const Call& call) {
  if (call.is_ring()) return {"ncclSend", "ncclRecv"};
  return {call.function == "ncclBcast" ? "ncclBroadcast" : call.function};
}

// Returns why a command can't make exactly this call, this often on each rank.
std::optional<Why> trouble(const Call& call, std::uint64_t times) {
  const Program* program = program_of(call.function);
  if (program == nullptr) return Why::program;
  if (theirs(kTypes, call.dtype).empty()) return Why::type;
  if (!call.reduce.empty() && theirs(kReductions, call.reduce).empty()) return Why::type;
  const auto parts = program->parts ? static_cast<std::uint64_t>(call.nranks) * kPartBytes : 1;
  if (call.bytes == 0 || call.bytes % parts != 0) return Why::size;
  return times < 2 ? std::optional(Why::once) : std::nullopt;
}

// Returns the arguments of that command.
std::vector<std::string> arguments(const Call& call, std::uint64_t times, bool one_rank_each) {
  const std::string bytes = std::to_string(call.bytes);
  std::vector<std::string> words = {"-b", bytes, "-e", bytes, "-d"};
  words.emplace_back(theirs(kTypes, call.dtype));
  if (!call.reduce.empty()) {
    words.insert(words.end(), {"-o", std::string(theirs(kReductions, call.reduce))});
  }
  if (call.root >= 0) words.insert(words.end(), {"-r", std::to_string(call.root)});
  // TimeTest warms up -w times with each size. BenchTime then makes one call and -n more, twice:
  // out of place and in place. -c 0 adds no calls to check data.
  const std::uint64_t warm_up = times % 2;
  const std::uint64_t timed = (times - warm_up) / 2 - 1;
  words.insert(words.end(), {"-g", one_rank_each ? "1" : std::to_string(call.nranks), "-w",
                             std::to_string(warm_up), "-n", std::to_string(timed), "-c", "0"});
  return words;
}

using read::Amounts;
using read::Process;

Amounts moved_by(const Call& call, std::uint64_t times) {
  return {.calls = times, .elements = call.elements * times, .bytes = call.bytes * times};
}

struct Times {
  std::uint64_t n = 0;
  std::int64_t first_ns = INT64_MAX;
};

// How often a rank made each call that has a line, by communicator. For sends and receives `root`
// is the peer.
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

  static constexpr std::size_t kMost = 65536;  // further calls count as without a line
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
    std::map<std::tuple<std::int64_t, std::string, std::string>, Amounts> unseen;
    for (const read::Row& row : rows) {
      if (!row.comm || row.mode == Mode::captured) continue;
      if (row.mode == Mode::replayed) {
        leave(Why::graph, row.name, row.dtype, nranks_of(p, *row.comm), row.amounts);
      } else {
        unseen[{*row.comm, row.name, row.dtype}] += row.amounts;
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
             const Amounts& moved) {
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

  // Takes what a program could make: each call as often as the rank that made it least. A receive
  // goes with its send.
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

using report::Json;
using report::or_null;
using text::thousands;

constexpr const char* kHead =
    "# These nccl-tests commands repeat the calls of {}: each makes the calls named {} it, and no "
    "others. They are sorted by their first call.\n# https://github.com/NVIDIA/nccl-tests, 2.16.8 "
    "or newer (older ones make one more call with -w 1); {}.\n# A command makes one call and -n "
    "more, out of place, and as many in place. With -n 0 the printed times mean nothing.\n";

struct Reason {
  Why why;
  const char* name;
  const char* text;
};
constexpr Reason kReasons[] = {
    {Why::graph, "graph", "launches of CUDA graphs made them"},
    {Why::no_line, "no_line", "of unknown size: without a line, or with too many sizes"},
    {Why::program, "program", "nccl-tests has no program that calls it"},
    {Why::type, "type", "nccl-tests does not have the data type, or the reduction"},
    {Why::communicator, "communicator", "the ranks of their communicator are unknown"},
    {Why::ranks, "ranks", "not known to be the same on all ranks of the communicator"},
    {Why::ring, "ring", "not a ring in which each rank sends the same to the next"},
    {Why::size, "size",
     "no data, or a part per rank that is no multiple of 16 bytes, which nccl-tests would round"},
    {Why::once, "once", "made once: nccl-tests makes each call at least twice"},
};

const Reason& reason(Why why) {
  return *std::ranges::find(kReasons, why, &Reason::why);
}

std::vector<std::string> words_of(const Run& run, const Launch& launch) {
  std::vector<std::string> words;
  if (launch.mpi) words = {"mpirun", "-np", std::to_string(run.call.nranks)};
  words.emplace_back(program_for(run.call.function));
  for (std::string& word : arguments(run.call, run.times, launch.mpi)) {
    words.push_back(std::move(word));
  }
  return words;
}

std::string command_of(const Run& run, const Launch& launch) {
  return fmt::format("{}", fmt::join(words_of(run, launch), " "));
}

std::string comment(const Run& run) {
  const Call& call = run.call;
  std::string out = fmt::format(
      "{} {} on each of {}, count {}", thousands(run.times), fmt::join(functions_of(call), " and "),
      check::counted(static_cast<std::uint64_t>(call.nranks), "rank"), thousands(call.count));
  if (call.function == "ncclBcast") out += ", for ncclBcast";
  if (run.communicators > 1) {
    out += fmt::format(", of {} communicators together", thousands(run.communicators));
  }
  if (run.hosts > 1) out += fmt::format(", on {} hosts", run.hosts);
  return out;
}

std::string left_text(const Plan& plan) {
  std::string out;
  for (const Reason& r : kReasons) {
    std::map<std::string, Amounts> functions;
    for (const auto& [left, moved] : plan.left) {
      if (left.why == r.why) functions[left.function] += moved;
    }
    for (const auto& [function, moved] : functions) {
      out += fmt::format("#   {} {}, {}: {}\n", thousands(moved.calls), text::printable(function),
                         text::bytes(moved.bytes), r.text);
    }
  }
  return out.empty() ? "" : "# Not repeated:\n" + out;
}

Json to_json(const Run& run, const Launch& launch) {
  const Call& call = run.call;
  const Amounts moved = run.moved();
  return {{"command", command_of(run, launch)},
          {"words", words_of(run, launch)},
          {"function", call.function},
          {"calls_of", functions_of(call)},
          {"dtype", call.dtype},
          {"reduce", or_null(call.reduce)},
          {"root", call.root < 0 ? Json() : Json(call.root)},
          {"count", call.count},
          {"nranks", call.nranks},
          {"communicators", run.communicators},
          {"hosts", run.hosts},
          {"times", run.times},
          {"calls", moved.calls},
          {"elements", moved.elements},
          {"bytes", moved.bytes}};
}

// Breaks a long command with backslashes.
std::string broken(std::string command, std::size_t width) {
  constexpr std::size_t kEnd = 2;  // " \\"
  std::string out;
  while (command.size() > width) {
    const std::size_t blank = command.rfind(' ', width - kEnd);
    if (blank == std::string::npos || blank == 0) break;
    out += command.substr(0, blank) + " \\\n ";
    command.erase(0, blank);
  }
  return out + command;
}

}  // namespace

Amounts Run::moved() const {
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

std::string to_text(const job::Job& job, const Plan& plan, const Launch& launch,
                    std::size_t width) {
  const bool above = std::ranges::any_of(plan.runs, [&](const Run& run) {
    return command_of(run, launch).size() + comment(run).size() + 4 > width;
  });
  std::string out = report::only_text(plan.only, plan.notes, "# ");
  out += fmt::format(kHead, text::printable(check::names_of(job.processes)),
                     above ? "above" : "behind",
                     launch.mpi ? "built with MPI=1" : "all ranks in one process");
  for (const Run& run : plan.runs) {
    const std::string command = command_of(run, launch);
    out += above ? fmt::format("# {}\n{}\n", comment(run), broken(command, width))
                 : fmt::format("{}  # {}\n", command, comment(run));
  }
  return out + left_text(plan);
}

std::string to_json(const job::Job& job, const Plan& plan, const Launch& launch) {
  Json runs = Json::array();
  for (const Run& run : plan.runs) runs.push_back(to_json(run, launch));
  Json left = Json::array();
  for (const auto& [key, moved] : plan.left) {
    left.push_back({{"why", reason(key.why).name},
                    {"function", key.function},
                    {"nranks", key.nranks == 0 ? Json() : Json(key.nranks)},
                    {"dtype", key.dtype},
                    {"calls", moved.calls},
                    {"elements", moved.elements},
                    {"bytes", moved.bytes}});
  }
  Json all = {{"schema", "tprof-replay/1"},
              {"run_id", or_null(job.run_id)},
              {"ranks", job.ranks},
              {"lines", runs},
              {"left", left}};
  if (!plan.only.sentence().empty()) all["only"] = report::only_json(plan.only, plan.notes);
  return report::printed(all, 2);
}

}  // namespace tprof::replay
