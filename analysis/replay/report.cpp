#include "replay/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "check/names.h"
#include "report/findings.h"
#include "text/text.h"

namespace tprof::replay {
namespace {

using Json = nlohmann::ordered_json;
using text::thousands;

constexpr const char* kHead =
    "# These runs of nccl-tests' programs make what {} called: each makes the calls that stand {} "
    "it, and no other. They stand in the order in which their calls were made first.\n"
    "# https://github.com/NVIDIA/nccl-tests, 2.16.8 or newer (with -w 1 older ones make a call "
    "more); {}.\n"
    "# A run makes one call and -n more, out of place, and as many in place. With -n 0 the times "
    "that it prints mean nothing.\n";

struct Reason {
  Why why;
  const char* name;
  const char* text;
};
constexpr Reason kReasons[] = {
    {Why::graph, "graph", "launches of CUDA graphs made them"},
    {Why::no_line, "no_line", "of unknown sizes: without a line, or of more sizes than are kept"},
    {Why::program, "program", "nccl-tests has no program that calls it"},
    {Why::type, "type", "nccl-tests does not have the data type, or the reduction"},
    {Why::communicator, "communicator", "it is not known on which ranks their communicator is"},
    {Why::ranks, "ranks", "not made by all ranks of the communicator alike, as far as is known"},
    {Why::ring, "ring", "no ring, in which each rank sends to the next and all alike"},
    {Why::size, "size",
     "no data, or a part for each rank that is no multiple of 16 bytes: nccl-tests rounds it"},
    {Why::once, "once", "made once: a program makes each call twice at least"},
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
  if (run.hosts > 1) out += fmt::format(", which were on {} hosts", run.hosts);
  return out;
}

std::string left_text(const Plan& plan) {
  std::string out;
  for (const Reason& r : kReasons) {
    std::map<std::string, Moved> functions;
    for (const auto& [left, moved] : plan.left) {
      if (left.why == r.why) functions[left.function] += moved;
    }
    for (const auto& [function, moved] : functions) {
      out += fmt::format("#   {} {}, {}: {}\n", thousands(moved.calls), text::printable(function),
                         text::bytes(moved.bytes), r.text);
    }
  }
  return out.empty() ? "" : "# Not in these lines:\n" + out;
}

template <typename T>
Json or_null(bool known, const T& value) {
  return known ? Json(value) : Json();
}

Json to_json(const Run& run, const Launch& launch) {
  const Call& call = run.call;
  const Moved moved = run.moved();
  return {{"command", command_of(run, launch)},
          {"words", words_of(run, launch)},
          {"function", call.function},
          {"calls_of", functions_of(call)},
          {"dtype", call.dtype},
          {"reduce", or_null(!call.reduce.empty(), call.reduce)},
          {"root", or_null(call.root >= 0, call.root)},
          {"count", call.count},
          {"nranks", call.nranks},
          {"communicators", run.communicators},
          {"hosts", run.hosts},
          {"times", run.times},
          {"calls", moved.calls},
          {"elements", moved.elements},
          {"bytes", moved.bytes}};
}

// A command that is too long for a line goes on in the next one, as a shell takes it.
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

std::string to_text(const job::Job& job, const Plan& plan, const Launch& launch,
                    std::size_t width) {
  const bool above = std::ranges::any_of(plan.runs, [&](const Run& run) {
    return command_of(run, launch).size() + comment(run).size() + 4 > width;
  });
  std::string out = fmt::format(kHead, text::printable(check::names_of(job.processes)),
                                above ? "above" : "behind",
                                launch.mpi ? "built with MPI=1" : "all ranks in one process");
  out += report::only_text(plan.only, plan.notes, "# ");
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
                    {"nranks", or_null(key.nranks != 0, key.nranks)},
                    {"dtype", key.dtype},
                    {"calls", moved.calls},
                    {"elements", moved.elements},
                    {"bytes", moved.bytes}});
  }
  Json all = {{"schema", "tprof-replay/1"},
              {"run_id", or_null(!job.run_id.empty(), job.run_id)},
              {"ranks", job.ranks},
              {"lines", runs},
              {"left", left}};
  if (!plan.only.empty()) all["only"] = report::only_json(plan.only, plan.notes);
  return all.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace tprof::replay
