// Every option of every command, with its help: the one place where CLI11 is used.
#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "cli/child.h"
#include "cli/commands.h"
#include "cli/standard_files.h"
#include "interpose/format/schema.h"
#include "text/text.h"

namespace tprof::cli {
namespace {

// What a command does if it is the one that was given, else -1.
using Run = std::function<int()>;

// What several commands take.
constexpr const char* kTraces = "folder of rank files, rank files, or a merged trace";
void add_run_choice(CLI::App& command, Choice& choice) {
  command
      .add_option("--run", choice.run,
                  "which run, where the files are of several (default: the last to start)")
      ->option_text("ID");
  command
      .add_option("--attempt", choice.attempt,
                  "which attempt of a run that was started again, from 1 (default: the last)")
      ->check(CLI::PositiveNumber)
      ->option_text("N");
}

Run add_run(CLI::App& app) {
  auto o = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Runs a command and traces it");
  command->footer(R"(
Examples:
  tprof run -- torchrun --nproc_per_node 8 train.py
  tprof run --quota 1GiB --ranks 0-7 -- python -m torch.distributed.run train.py
  srun tprof run --out /shared/traces/run1 -- python train.py
The command's standard output is its own; the summary goes to standard error. Rank files of processes
that were killed are recovered first. tprof exits as the command did.)");
  command->positionals_at_end();
  command->add_option("--out", o->out, "folder for the traces (default tprof-traces/<command>-...)")
      ->option_text("DIR");
  command->add_option("--run-id", o->run_id, "name of the run (default: the launcher's, or random)")
      ->option_text("ID");
  command->add_option("--events", o->events, "TPROF_EVENTS: a line per call, or counts only")
      ->check(CLI::IsMember({"on", "off", "all"}))
      ->option_text("on|off|all");
  command->add_option("--quota", o->quota, "TPROF_QUOTA: bytes of lines per process, 0: no limit")
      ->option_text("SIZE");
  command->add_option("--ranks", o->ranks, "TPROF_RANKS: which ranks write lines, such as 0-7,64")
      ->option_text("LIST");
  command->add_flag("--quiet", o->quiet, "no summary at the end");
  command->add_option("CMD", o->command, "the command and its arguments, behind --")->required();
  return [o, command] { return command->parsed() ? run(*o) : -1; };
}

Run add_merge(CLI::App& app) {
  auto o = std::make_shared<MergeOptions>();
  CLI::App* command = app.add_subcommand("merge", "One Perfetto trace from all ranks");
  command->footer(R"(
Examples:
  tprof merge tprof-traces/train-20260101-120000-0 -o trace.json.gz
  tprof merge DIR -o first-node.json --ranks 0-7
Open the result in https://ui.perfetto.dev, or give it to tprof summary.)");
  command->add_option("PATH", o->paths, "folder of rank files, or rank files")->required();
  command
      ->add_option("-o,--output", o->output,
                   "the merged trace; FILE.gz is compressed, - is standard output")
      ->required()
      ->option_text("FILE");
  command->add_option("--ranks", o->ranks, "only these, such as 0-3,7")->option_text("LIST");
  add_run_choice(*command, o->choice);
  return [o, command] { return command->parsed() ? merge(*o) : -1; };
}

Run add_summary(CLI::App& app) {
  auto o = std::make_shared<SummaryOptions>();
  CLI::App* command = app.add_subcommand("summary", "Totals of a run: what moved, where, how much");
  command->footer(R"(
Examples:
  tprof summary tprof-traces/train-20260101-120000-0
  tprof summary DIR --per-rank --by dtype
  tprof summary merged.json.gz --json | jq .buckets.ALLGATHER
Exit code: 0 all ranks are there and closed, 1 not all of them, 2 unreadable input.)");
  command->add_option("PATH", o->paths, kTraces)->required();
  command->add_flag("--json", o->json, "for programs (schema tprof-summary/1)");
  command->add_flag("--per-rank", o->per_rank, "the buckets of every rank");
  const std::map<std::string, report::By> dimensions = {{"size", report::By::size},
                                                        {"op", report::By::op},
                                                        {"comm", report::By::comm},
                                                        {"dtype", report::By::dtype}};
  command->add_option("--by", o->by, "operations by size (default), op, comm or dtype")
      ->transform(CLI::CheckedTransformer(dimensions).description(""))
      ->option_text("WHAT");
  command->add_flag("--lines", o->lines,
                    "read event lines too: tells gathers of objects from those of tensors");
  add_run_choice(*command, o->choice);
  return [o, command] { return command->parsed() ? summary(*o) : -1; };
}

Run add_check(CLI::App& app) {
  auto o = std::make_shared<CheckOptions>();
  CLI::App* command = app.add_subcommand(
      "check", "Did all ranks do the same, where did they stop, and is the trace whole");
  command->footer(R"(
Examples:
  tprof check tprof-traces/train-20260101-120000-0
  tprof check DIR --no-lines      # thousands of ranks: the ends of the files only
  tprof check DIR --json | jq '.findings[] | select(.severity == "error")'
What the hosts called is compared: a rank that is only late in every step is not named.
Exit code: 0 healthy, 1 something to look at, 2 unreadable input.)");
  command->add_option("PATH", o->paths, kTraces)->required();
  command->add_flag("--json", o->json, "for programs (schema tprof-check/1)");
  command->add_flag("--no-lines", o->no_lines,
                    "read ledgers only: faster, but names an interval instead of an operation");
  command
      ->add_option("--stuck-after", o->stuck_after_s,
                   "seconds after which a call of a process that still runs is stuck (default 30)")
      ->check(CLI::Range(0.0, 1e9))
      ->option_text("SECONDS");
  add_run_choice(*command, o->choice);
  return [o, command] { return command->parsed() ? check(*o) : -1; };
}

Run add_doctor(CLI::App& app) {
  auto o = std::make_shared<DoctorOptions>();
  CLI::App* command =
      app.add_subcommand("doctor", "What would be or was traced, and what goes past");
  command->footer(R"(
Examples:
  tprof doctor                                  this machine and environment
  tprof doctor -- torchrun train.py             what would be traced; runs nothing of it
  tprof doctor tprof-traces/train-20260101-120000-0      what was traced, and what was not
Exit code: 0 all well, 1 a warning or an error, 2 wrong usage or unreadable input.)");
  command->positionals_at_end();
  command->add_option("PATH|CMD", o->words,
                      "folder of rank files, or a command behind --; neither: this machine");
  command->add_flag("--json", o->json, "for programs (schema tprof-doctor/1)");
  add_run_choice(*command, o->choice);
  return [o, command] { return command->parsed() ? doctor(*o) : -1; };
}

Run add_coverage(CLI::App& app) {
  auto o = std::make_shared<CoverageOptions>();
  CLI::App* command =
      app.add_subcommand("coverage", "Every function that is counted, how, and what is not");
  command->footer(R"(
Examples:
  tprof coverage
  tprof coverage --json | jq -r '.functions[] | select(.buckets | index("MANAGED")) | .name'
It is the libtprof.so beside this program that tells. since: the version of NCCL or CUDA that brought
a function; 2.7 and 3.2 are the oldest that are known, and may stand for older ones.
What of it a program used, and what moved data past it, says tprof doctor DIR.)");
  command->add_flag("--json", o->json, "for programs (schema tprof-coverage/1)");
  return [o, command] { return command->parsed() ? coverage(*o) : -1; };
}

Run add_recover(CLI::App& app) {
  auto o = std::make_shared<RecoverOptions>();
  CLI::App* command =
      app.add_subcommand("recover", "Closes the rank files of processes that were killed");
  command->footer(R"(
Examples:
  tprof recover tprof-traces/train-20260101-120000-0
  tprof recover rank-00003.json
tprof run does this by itself when its command has ended. Without it summary, merge and check read
ring files as they are; recovering makes rank files that can be copied and kept.
Exit code: 0 every rank file is closed, 1 some were left as they are, 2 unreadable input.)");
  command->add_option("PATH", o->paths, "folder of rank files, or rank files")->required();
  command->add_flag("--force", o->force, "processes of other hosts are dead");
  return [o, command] { return command->parsed() ? recover(*o) : -1; };
}

Run add_anonymize(CLI::App& app) {
  auto o = std::make_shared<AnonymizeOptions>();
  CLI::App* command =
      app.add_subcommand("anonymize", "A copy of traces without hosts, paths and commands");
  command->footer(R"(
Examples:
  tprof anonymize tprof-traces/train-20260101-120000-0 -o for-the-issue
  tprof anonymize trace.json.gz -o for-the-issue
Hosts, runs, commands, folders, names of threads and communicators, GPU ids and values of settings
become host-1, run-1 and so on, the same in all files. Counts, times, ranks, process ids and the
names of libraries stay. Look at the result before you publish it.)");
  command->add_option("PATH", o->paths, "folder of rank files, rank files, or merged traces")
      ->required();
  command->add_option("-o,--output", o->output, "a new folder for the copies")
      ->required()
      ->option_text("DIR");
  return [o, command] { return command->parsed() ? anonymize(*o) : -1; };
}

}  // namespace

int execute(int argc, char** argv) {
  CLI::App app("Counts and times the communication of a training job.", "tprof");
  app.set_version_flag("--version", std::string("tprof ") + kVersion + " (" + kSchema + ")");
  app.require_subcommand(1);
  app.failure_message([](const CLI::App*, const CLI::Error& e) {
    return fmt::format("tprof: {} (tprof --help tells more)\n", report::printable(e.what()));
  });
  // In the order in which --help lists them.
  const std::vector<Run> commands = {add_run(app),     add_merge(app),    add_summary(app),
                                     add_check(app),   add_doctor(app),   add_coverage(app),
                                     add_recover(app), add_anonymize(app)};
  try {
    hold_standard_files();
    app.parse(argc, argv);
    if (!app.got_subcommand("run")) let_writes_fail();
    for (const Run& command : commands) {
      if (const int code = command(); code >= 0) return said(code);
    }
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kOk : kBadUsage;
  } catch (const std::exception& e) {
    fmt::print(stderr, "tprof: {}\n", report::printable(e.what()));
  }
  return kBadUsage;
}

}  // namespace tprof::cli
