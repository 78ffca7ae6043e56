#include "cli/option_table.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <string_view>

#include "cli/by_option.h"
#include "cli/manual.h"
#include "cli/numbers.h"

namespace tprof::cli {
namespace {

// Slowest calls, or bins of a histogram.
void take_how_many(CLI::Option* option) {
  take(option, {1, 1000, "20", kWhole});
}

// Replaces the name by its number, as CLI11 reads an enum. Returns what is wrong.
std::string to_clock(std::string& name) {
  if (name != "collective" && name != "realtime") {
    return "expected collective or realtime; found " + name;
  }
  using enum trace_export::Clock;
  name = std::to_string(static_cast<int>(name == "collective" ? collective : realtime));
  return "";
}

}  // namespace

std::vector<CommandRow> commands(Options& o) {
  static const std::string tables = names_of_by();
  static const std::string about_tables = "which table; " + about_by();
  constexpr const char* kTraces =
      "folder of rank files, rank files, or a merged trace (default: the newest run in "
      "./tprof-traces)";
  const Option run_id = {"--run", &o.choice.run,
                         "which run, where the files are of several (default: the last to start)",
                         "ID"};
  const Option attempt = {
      "--attempt",
      &o.choice.attempt,
      "which attempt of a run that was started again, from 1 (default: the last)",
      "N",
      false,
      [](CLI::Option* option) {
        take(option, {1, kMostInt, "2", kWhole});
      }};
  const Option stuck_after = {
      "--stuck-after",
      &o.stuck_after_s,
      "seconds after which a call of a process that still runs is stuck (default 30)",
      "SECONDS",
      false,
      [](CLI::Option* option) {
        take(option, {0, 1e9, "60", kSeconds});
      }};
  const Option peak = {
      "--peak", &o.peak,
      "the bus bandwidth that links should reach, as nccl-tests counts it, in GB/s: "
      "400, or intra=450,inter=50 within hosts and between them",
      "GB/s"};
  // If a call has stood for less than a second, check says that the rank stopped there.
  Option stands_for = stuck_after;
  stands_for.restrict_it = [](CLI::Option* option) { take(option, {1, 1e9, "60", kSeconds}); };
  const Option clock = {
      "--clock",
      &o.clock,
      "several hosts on one axis by what their collectives prove (collective, the default: where "
      "these were timed on the device), or as their wall clocks were (realtime)",
      "collective|realtime",
      false,
      [](CLI::Option* option) { option->transform(CLI::Validator(to_clock, "")); }};
  std::vector<CommandRow> rows = {
      {"run",
       "Runs a command and traces it",
       R"(
Examples:
  tprof run -- torchrun --nproc_per_node 8 train.py
  tprof run --quota 1GiB --ranks 0-7 -- python -m torch.distributed.run train.py
  srun tprof run --out /shared/traces/run1 -- python train.py
  tprof run --handler 'grep tprof_step > steps.jsonl' -- torchrun train.py
  tprof run --on-window 'cp {} /shared/windows' --keep-windows 3 -- torchrun train.py
  tprof run --with-torch-profiler --torch-steps 100-103 -- torchrun train.py
The command's standard output is its own; the summary goes to standard error.
Rank files of processes that were killed are recovered first. tprof exits as
the command did.)",
       run,
       {{"--out", &o.output, "folder for the traces (default tprof-traces/<script or command>-...)",
         "DIR"},
        {"--run-id", &o.run_id, "name of the run (default: the launcher's, or random)", "ID"},
        {"--events", &o.events, "TPROF_EVENTS: a line per call, or counts only", "on|off|all",
         false,
         [](CLI::Option* option) {
           option->check(CLI::IsMember({"on", "off", "all"}));
         }},
        {"--quota", &o.quota, "TPROF_QUOTA: bytes of lines per process, 0: no limit", "SIZE"},
        {"--ranks", &o.ranks, "TPROF_RANKS: which ranks write lines, such as 0-7,64", "LIST"},
        {"--on-stuck", &o.command,
         "a shell command for processes of it that are stuck, once, such as 'py-spy dump --pid "
         "{pid}': see tprof watch",
         "CMD"},
        stands_for,
        {"--handler", &o.handlers,
         "a shell command that gets the lines of the ranks on its standard input as they are "
         "written, as tprof tail prints them; may be given several times",
         "CMD"},
        {"--handler-wait", &o.handler_wait_s,
         "seconds that handlers have to read the rest and end, behind the job (default 10)",
         "SECONDS", false,
         [](CLI::Option* option) {
           take(option, {0, 1e6, "10", kSeconds});
         }},
        {"--on-window", &o.on_window,
         "a shell command for each window's file (TPROF_WINDOW_FILES) that is whole, such as 'cp "
         "{} /shared'",
         "CMD"},
        {"--keep-windows", &o.keep_windows,
         "deletes all but the last N windows' files of each rank, behind their --on-window", "N",
         false,
         [](CLI::Option* option) {
           take(option, {0, kMostInt, "3", kWhole});
         }},
        {"--with-torch-profiler", &o.with_torch_profiler,
         "PyTorch's own profiler for some steps of each rank, without a line in the program, and "
         "both on one timeline: DIR/torch"},
        {"--torch-steps", &o.torch_steps,
         "which, by the steps of PyTorch's optimizers (default: TPROF_SCHEDULE's first window, or "
         "10-12)",
         "STEPS"},
        {"--quiet", &o.quiet, "no summary at the end"},
        {"CMD", &o.words, "the command and its arguments, behind --", nullptr, true}}},
      {"merge",
       "One Perfetto trace from all ranks",
       R"(
Examples:
  tprof merge tprof-traces/train-20260101-120000-0 -o trace.json.gz
  tprof merge DIR -o first-node.json --ranks 0-7 --steps 10-12
  tprof merge DIR -o both.json.gz --with 'profiler/*.pt.trace.json.gz'
Open the result in https://ui.perfetto.dev, or give it to tprof summary.
Beside the lines of the ranks it has lanes of their steps and of exposed
communication, bytes per second by bucket, and arrows: from a call to its time
on the device, from a send to its receive, and between the ranks of a
collective, in the order in which they came. Arrows between ranks are left out
where the result might become larger than --max-size with them.)",
       merge,
       {{"PATH", &o.paths, kTraces, nullptr},
        {"-o,--output", &o.output, "the merged trace; FILE.gz is compressed, - is standard output",
         "FILE", true},
        {"--positions", &o.positions,
         "each event says its step in its arguments, and its epoch where the program's numbers of "
         "steps begin again or it is reset"},
        {"--with", &o.with,
         "a trace of another tool in Chrome's format, such as PyTorch's profiler's: a file, "
         "folder or pattern, beside the lanes of the rank that it says it is of, or RANK=FILE; may "
         "be repeated",
         "FILE"},
        {"--max-size", &o.max_size,
         "refuse to write more, before compression (default 1GiB, for FILE.gz 2GiB)", "SIZE"},
        {"--force", &o.force, "write it whatever its size"},
        clock,
        run_id,
        attempt},
       kAllFilters},
      {"export",
       "Tables of all calls and counts (SQLite, CSV, Parquet), and files for other tools",
       R"(
Examples:
  tprof export tprof-traces/train-20260101-120000-0 --sqlite run.db
  tprof export DIR --csv tables --ranks 0-7
  tprof export DIR --parquet lake            # pip install pyarrow; DuckDB, Spark, Dask read it
  tprof export DIR --kineto -o profile       # HTA, tensorboard --logdir profile
  tprof export DIR --inspector -o logs       # as NCCL's Inspector
analysis/export/README.md describes the tables and files, with queries. A file
that has the name of the output already is not replaced.)",
       export_traces,
       {{"PATH", &o.paths, kTraces, nullptr},
        {"--sqlite", &o.sqlite, "a new database", "FILE"},
        {"--csv", &o.csv, "a new or an empty folder, for a file per table", "DIR"},
        {"--parquet", &o.parquet,
         "the same, for a data set of Parquet files; python3 in PATH needs pyarrow", "DIR"},
        {"--kineto", &o.kineto,
         "traces like PyTorch's profiler's, of what was timed on the device, a file per rank"},
        {"--inspector", &o.inspector,
         "the collectives that were timed on the device, a file per rank"},
        {"-o,--output", &o.output, "a new or an empty folder, for these", "DIR"},
        clock,
        run_id,
        attempt},
       kAllFilters},
      {"replay",
       "Lines of nccl-tests that make the same collectives again",
       R"(
Examples:
  tprof replay tprof-traces/train-20260101-120000-0 > replay.sh
  PATH=$PATH:nccl-tests/build sh replay.sh
  tprof replay DIR --mpi           # a process for each rank, where nccl-tests was built with MPI=1
Each line says how many calls it stands for; behind them stands what no line
makes, and why.)",
       replay,
       {{"PATH", &o.paths, kTraces, nullptr},
        {"--mpi", &o.mpi, "with mpirun, a process for each rank; else all ranks are in one (-g)"},
        {"--json", &o.json, "for programs (schema tprof-replay/1)"},
        run_id,
        attempt},
       kAllFilters},
      {"summary",
       "Totals of a run: what moved, where, how much",
       R"(
Examples:
  tprof summary tprof-traces/train-20260101-120000-0
  tprof summary DIR --per-rank --by dtype
  tprof summary DIR --steps 10- --ops ALLGATHER --sizes 1M- --top 20
  tprof summary DIR --hist ncclAllGather --per-rank
  tprof summary merged.json.gz --json | jq .buckets.ALLGATHER
Exit code: 0 all ranks are there, and closed or ended with no call open and none
behind the others; 1 one is missing, still runs or ended at work, or counts are
not whole; 2 unreadable input. tprof check tells how they ended.)",
       summary,
       {{"PATH", &o.paths, kTraces, nullptr},
        {"--json", &o.json, "for programs (schema tprof-summary/1)"},
        {"-v,--verbose", &o.verbose,
         "each operation and column, and what ran on which libraries with which settings"},
        {"--per-rank", &o.per_rank, "the buckets of every rank; with --hist its histogram"},
        {"--by", &o.by, about_tables.c_str(), tables.c_str(), false,
         [](CLI::Option* option) { option->transform(CLI::Validator(to_by, "")); }},
        {"--top", &o.top,
         "the calls that took longest: on the device, where calls are timed there, else on the "
         "host",
         "N", false, take_how_many},
        {"--hist", &o.hist,
         "how long calls of an operation or a bucket took, or NVTX ranges of a name, as a "
         "histogram",
         "NAME"},
        {"--epoch", &o.epoch,
         "only what was counted between two resets (tprof_reset, tprof ctl reset), from 0", "N",
         false,
         [](CLI::Option* option) {
           take(option, {0, UINT32_MAX, "1", kWhole});
         }},
        {"--bins", &o.bins, "of it (default 20)", "N", false, take_how_many},
        {"--lines", &o.lines,
         "read event lines too: tells gathers of objects from those of tensors"},
        peak,
        run_id,
        attempt},
       kAllFilters,
       true},
      {"check",
       "Did all ranks do the same, where did they stop, and is the trace whole",
       R"(
Examples:
  tprof check tprof-traces/train-20260101-120000-0
  tprof check DIR --no-lines      # thousands of ranks: the ends of the files only
  tprof check DIR --json | jq '.findings[] | select(.severity == "error")'
  tprof check DUMPS               # of PyTorch's Flight Recorder: nccl_trace_rank_*
It compares what the hosts called. tprof report tells causes and costs, also
of a rank that the others wait for.
Exit code: 0 no warning and no error, 1 one of these, 2 unreadable input.)",
       check,
       {{"PATH", &o.paths, kTraces, nullptr},
        {"--json", &o.json, "for programs (schema tprof-check/1)"},
        {"--no-lines", &o.no_lines,
         "read ledgers only: faster, but names an interval instead of an operation"},
        stuck_after,
        run_id,
        attempt},
       kRanks | kComm,
       true},
      {"report",
       "Why a job is slower than it should be, and which rank is to blame",
       R"(
Examples:
  tprof report tprof-traces/train-20260101-120000-0
  tprof report DIR -o report.html     # one file, with charts; it needs no network
  tprof report DIR --peak intra=450,inter=50    # which transfers reach less than half of that?
The verdict comes first. What only costs time is a note.
Exit code: 0 no warning and no error, 1 one of these, 2 unreadable input.)",
       report_of,
       {{"PATH", &o.paths, kTraces, nullptr},
        {"-o,--output", &o.output, "the page; replaces one of tprof report", "FILE.html"},
        {"--json", &o.json, "the page's data, for programs (schema tprof-report/1)"},
        peak,
        run_id,
        attempt},
       kAllFilters,
       true},
      budget_row(o, {"PATH", &o.paths, kTraces}, run_id, attempt),
      {"diff",
       "Differences between two runs: counts, times, settings",
       R"(
Examples:
  tprof diff last-week today
  tprof diff A B --fail-on calls,bytes,time:5%,busbw:10%
  tprof diff A B --no-lines --fail-on calls,versions       # thousands of ranks: counts only
--fail-on takes calls, elements, bytes (in either direction), time (of a
step, with what long ones add to it), long_steps, exposed, host, device,
algbw, busbw (worse, beyond the noise), each with a share of A's that is let pass, slow_ranks (one
holds up the others in B alone; with a share of its step), and settings, versions, hosts, size (ranks,
steps, number of hosts).
Exit code: 0 nothing that --fail-on names changed, 1 it did, 2 unreadable
input, or it can't be said: of time and long_steps, if they are longer by more than the share, and
more than that, and than a tenth of a step, may be chance.)",
       diff_runs,
       {{"A", &o.run_a, "folder of rank files, or a merged trace", nullptr, true},
        {"B", &o.run_b, "the same, of another run", nullptr, true},
        {"--fail-on", &o.fail_on, "exit with 1 if these changed, such as calls,time:5%", "LIST"},
        {"--no-lines", &o.no_lines, "read ledgers only: counts, and no times"},
        {"--json", &o.json, "for programs (schema tprof-diff/1)"}},
       kAllFilters},
      {"doctor",
       "Tells what would be or was traced, and what goes past",
       R"(
Examples:
  tprof doctor                                  this machine and environment
  tprof doctor -- torchrun train.py             what would be traced; runs nothing of it
  tprof doctor tprof-traces/train-20260101-120000-0      what was traced, and what was not
Exit code: 0 all well, 1 a warning or an error, 2 wrong usage or unreadable
input.)",
       doctor,
       {{"PATH|CMD", &o.words,
         "folder of rank files, or a command behind --; neither: this machine"},
        {"--json", &o.json, "for programs (schema tprof-doctor/1)"},
        run_id,
        attempt}},
      {"coverage",
       "Every function that is counted, how, and what is not",
       R"(
Examples:
  tprof coverage
  tprof coverage --json | jq -r '.functions[] | select(.buckets | index("MANAGED")) | .name'
It is the libtprof.so beside this program that tells. since: the version of
NCCL or CUDA that brought a function; 2.7 and 3.2 are the oldest that are
known, and may stand for older ones. tprof doctor DIR tells what a program
used of it, and what moved data past it.)",
       coverage,
       {{"--json", &o.json, "for programs (schema tprof-coverage/1)"}}},
      {"recover",
       "Closes the rank files of processes that were killed",
       R"(
Examples:
  tprof recover tprof-traces/train-20260101-120000-0
  tprof recover rank-00003.json
tprof run does this by itself when its command has ended. Without it summary,
merge and check read ring files as they are; recovering makes rank files that
can be copied and kept.
Exit code: 0 every rank file is closed, 1 some were left as they are, 2
unreadable input.)",
       recover,
       {{"PATH", &o.paths, "folder of rank files, or rank files", nullptr, true},
        {"--force", &o.force, "processes of other hosts are dead"}}},
      {"anonymize",
       "A copy of traces without hosts, paths and commands",
       R"(
Examples:
  tprof anonymize tprof-traces/train-20260101-120000-0 -o for-the-issue
  tprof anonymize trace.json.gz -o for-the-issue
Hosts, runs, commands, folders, names of threads and communicators, GPU ids
and values of settings become host-1, run-1 and so on, the same in all files.
Counts, times, ranks, process ids and the names of libraries stay. Look at the
result before you publish it.)",
       anonymize,
       {{"PATH", &o.paths, "folder of rank files, rank files, or merged traces", nullptr, true},
        {"-o,--output", &o.output, "a new folder for the copies", "DIR", true}}},
  };
  // Those for jobs that run come before doctor.
  const auto doctor_row = std::ranges::find(rows, std::string_view("doctor"),
                                            [](const CommandRow& r) { return r.name; });
  const std::vector<CommandRow> live = live_rows(o, run_id, attempt, stands_for);
  rows.insert(doctor_row, live.begin(), live.end());
  for (CommandRow& row : rows_about_the_table(o)) rows.push_back(std::move(row));
  for (CommandRow& row : rows) {
    for (Option& filter : filter_rows(o, row.filters)) row.options.push_back(std::move(filter));
  }
  return rows;
}

}  // namespace tprof::cli
