#include "cli/option_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/StringTools.hpp>
#include <cstdint>
#include <ranges>

#include "report/views.h"

namespace tprof::cli {
namespace {

constexpr double kMostInt = std::numeric_limits<int>::max();
constexpr double kMostCount = 4294967296;
constexpr Numbers kHowMany = {1, 1000, "20", Numbers::whole};
constexpr Numbers kCount = {1, kMostCount, "32", Numbers::whole};
constexpr Numbers kAttempt = {1, kMostInt, "2", Numbers::whole};
constexpr Numbers kEpoch = {0, UINT32_MAX, "1", Numbers::whole};
constexpr Numbers kInterval = {0.01, 1e6, "2", Numbers::seconds};
constexpr Numbers kMemory = {1, 1 << 24, "4096", Numbers::whole};
constexpr Numbers kParams = {kAboveZero, kNoMost, "7e9"};
constexpr Numbers kPercent = {0, kNoMost, "1.5"};
constexpr Numbers kRootParams = {0, kNoMost, "5e8"};
constexpr Numbers kMadeSteps = {1, kMostCount, "100", Numbers::whole};
constexpr Numbers kStuckAfter = {0, 1e9, "60", Numbers::seconds};
constexpr Numbers kWait = {0, 1e6, "10", Numbers::seconds};
constexpr Numbers kWindows = {0, kMostInt, "3", Numbers::whole};

Option required(Option option) {
  option.required = true;
  return option;
}

Option only_with(const char* other, Option option) {
  option.only_with = other;
  return option;
}

// Explains table names that need it: "range: NVTX; ..."
std::string about_tables() {
  std::string all = "which table";
  for (const report::ByRow& row : report::by_rows()) {
    if (*row.about != '\0') all += fmt::format("; {}: {}", row.name, row.about);
  }
  return all;
}

std::vector<Option> shared_options(Options& o, unsigned which) {
  filter::Words& only = o.only;
  const std::pair<unsigned, Option> all[] = {
      {kChoice,
       {"--run", &o.choice.run,
        "which run, by its id or the beginning of it, if the files belong to several (default: the "
        "last to start)",
        "ID"}},
      {kChoice,
       {"--attempt", &o.choice.attempt,
        "which attempt of a restarted run, from 1 (default: the last)", "N", kAttempt}},
      {kRanks, {"--ranks", &only.ranks, "only these ranks, such as 0-3,7", "LIST"}},
      {kSteps,
       {"--steps", &only.steps, "only calls in these steps, such as 10-, 3-7 or 3,5-7", "LIST"}},
      {kOps,
       {"--ops", &only.ops,
        "only these buckets or functions, such as ALLGATHER,H2D or 'nccl*Reduce*'", "NAMES"}},
      {kSizes,
       {"--sizes", &only.sizes,
        "only calls of these sizes in bytes, such as 1M-64M, 64K-, -4K or 32768", "RANGE"}},
      {kComm,
       {"--comm", &only.comms,
        "only calls on these communicators: name, id or its beginning, number, or role such as dp",
        "LIST"}},
      {kPhase,
       {"--phase", &only.phases,
        "only calls in these phases of a step: load, forward, backward, optimizer, other",
        "NAMES"}}};
  std::vector<Option> options;
  for (const auto& [bit, option] : all) {
    if ((which & bit) != 0) options.push_back(option);
  }
  return options;
}

}  // namespace

std::vector<std::string> Option::list() const {
  return CLI::detail::split(names, ',');
}

std::vector<std::string> Option::words() const {
  if (value.find('|') == std::string::npos) return {};
  return CLI::detail::split(value, '|');
}

std::vector<CommandRow> commands(Options& o) {
  const Option traces = {"PATH", &o.paths,
                         "folder of rank files, rank files, or a merged trace (default: the newest "
                         "run in ./tprof-traces)"};
  const Option folder = {
      "DIR", &o.folder, "folder of a job's rank files (default: the newest run in ./tprof-traces)"};
  const auto json = [&](const char* schema) {
    return Option{"--json", &o.json, fmt::format("for programs (schema {})", schema)};
  };
  const Option stuck_after = {
      "--stuck-after", &o.stuck_after_s,
      "seconds after which a call of a running process counts as stuck (default 30)", "SECONDS",
      kStuckAfter};
  // For check, a call of less than a second means that the rank stopped there.
  Option stands_for = stuck_after;
  stands_for.numbers.least = 1;
  const Option peak = {"--peak", &o.peak,
                       "the busbw of nccl-tests that links should reach, in GB/s: 400, or "
                       "intra=450,inter=50 within and between hosts",
                       "GB/s"};
  const Option clock = {"--clock", &o.clock,
                        "how to align several hosts: by their collectives (collective, the default "
                        "if these were timed on the device), or by their wall clocks (realtime)",
                        "collective|realtime"};
  budget::Model& m = o.model;
  std::vector<CommandRow> rows = {
      {"run",
       "Runs a command and traces it",
       R"(  tprof run -- torchrun --nproc_per_node 8 train.py
  tprof run --quota 1GiB --ranks 0-7 -- python -m torch.distributed.run train.py
  srun tprof run --out /shared/traces/run1 -- python train.py
  tprof run --handler 'grep tprof_step > steps.jsonl' -- torchrun train.py
  tprof run --on-window 'cp {} /shared/windows' --keep-windows 3 -- torchrun train.py
  tprof run --with-torch-profiler --torch-steps 100-103 -- torchrun train.py
The command's standard output is its own; the summary goes to standard error.
Rank files of processes that were killed are recovered first. tprof exits as
the command did.)",
       run,
       {{"--out", &o.output,
         "folder for the traces, %j: job id, %h: host (default TPROF_OUTPUT_DIR, else "
         "tprof-traces/<script or command>-...)",
         "DIR"},
        {"--run-id", &o.run_id, "name of the run (default: the launcher's, or random)", "ID"},
        {"--events", &o.events, "TPROF_EVENTS: a line per call, or counts only", "on|off|all"},
        {"--quota", &o.quota, "TPROF_QUOTA: bytes of lines per process, 0: no limit", "SIZE"},
        {"--ranks", &o.ranks, "TPROF_RANKS: which ranks write lines, such as 0-7,64", "LIST"},
        {"--on-stuck", &o.command,
         "a shell command that is run once for its stuck processes, such as 'py-spy dump --pid "
         "{pid}': see tprof watch",
         "CMD"},
        only_with("--on-stuck", stands_for),
        {"--handler", &o.handlers,
         "a shell command that gets the ranks' lines on standard input as they are written, like "
         "tprof tail; may be given several times",
         "CMD"},
        only_with("--handler",
                  {"--handler-wait", &o.handler_wait_s,
                   "seconds for handlers to read the rest and end after the job (default 10)",
                   "SECONDS", kWait}),
        {"--on-window", &o.on_window,
         "a shell command for each complete window's file (TPROF_WINDOW_FILES), such as 'cp {} "
         "/shared'",
         "CMD"},
        {"--keep-windows", &o.keep_windows,
         "deletes all but the last N windows' files of each rank, after their --on-window", "N",
         kWindows},
        {"--with-torch-profiler", &o.with_torch_profiler,
         "PyTorch's own profiler for some steps of each rank, without changing the program, and "
         "both on one timeline: DIR/torch"},
        only_with("--with-torch-profiler", {"--torch-steps", &o.torch_steps,
                                            "which steps, counted by PyTorch's optimizers "
                                            "(default: TPROF_SCHEDULE's first window, or 10-12)",
                                            "STEPS"}),
        {"--quiet", &o.quiet, "no summary at the end"},
        required({"CMD", &o.words, "the command and its arguments, after --"})}},
      {"merge",
       "One Perfetto trace from all ranks",
       R"(  tprof merge tprof-traces/train-20260101-120000-0 -o trace.json.gz
  tprof merge DIR -o first-node.json --ranks 0-7 --steps 10-12
  tprof merge DIR -o both.json.gz --with 'profiler/*.pt.trace.json.gz'
Open the result in https://ui.perfetto.dev, or give it to tprof summary.
Beside the lines of the ranks it has lanes of their steps and of exposed
communication, bytes per second by bucket, and arrows: from a call to its time
on the device, from a send to its receive, and between the ranks of a
collective, in the order in which they came. Arrows between ranks are left out
where the result might become larger than --max-size with them.)",
       merge,
       {traces,
        required({"-o,--output", &o.output,
                  "the merged trace; FILE.gz is compressed, - is standard output", "FILE"}),
        {"--positions", &o.positions,
         "each event has its step in its arguments, and its epoch if the program's step numbers "
         "restart or it is reset"},
        {"--with", &o.with,
         "a trace of another tool in Chrome's format, such as PyTorch's profiler: a file, folder "
         "or pattern, shown beside the lanes of its rank, or RANK=FILE; may be repeated",
         "FILE"},
        {"--max-size", &o.max_size,
         "refuse to write more, before compression (default 1GiB, for FILE.gz 2GiB)", "SIZE"},
        {"--force", &o.force, "write any size"},
        clock},
       kChoice | kAllFilters},
      {"export",
       "Tables of all calls and counts (SQLite, CSV, Parquet), and files for other tools",
       R"(  tprof export tprof-traces/train-20260101-120000-0 --sqlite run.db
  tprof export DIR --csv tables --ranks 0-7
  tprof export DIR --parquet lake            # pip install pyarrow; DuckDB, Spark, Dask read it
  tprof export DIR --kineto -o profile       # HTA, tensorboard --logdir profile
  tprof export DIR --inspector -o logs       # as NCCL's Inspector
analysis/export/README.md describes the tables and files, with queries. A file
that has the name of the output already is not replaced.)",
       export_traces,
       {traces,
        {"--sqlite", &o.sqlite, "a new database", "FILE"},
        {"--csv", &o.csv, "a new or an empty folder, for a file per table", "DIR"},
        {"--parquet", &o.parquet,
         "the same, for a data set of Parquet files; python3 in PATH needs pyarrow", "DIR"},
        {"--kineto", &o.kineto,
         "traces in the format of PyTorch's profiler, with everything timed on the device, a file "
         "per rank"},
        {"--inspector", &o.inspector,
         "the collectives that were timed on the device, a file per rank"},
        {"-o,--output", &o.output, "a new or an empty folder, for these", "DIR"},
        clock},
       kChoice | kAllFilters,
       false,
       {"--sqlite", "--csv", "--parquet", "--kineto", "--inspector"}},
      {"replay",
       "Lines of nccl-tests that make the same collectives again",
       R"(  tprof replay tprof-traces/train-20260101-120000-0 > replay.sh
  PATH=$PATH:nccl-tests/build sh replay.sh
  tprof replay DIR --mpi           # a process for each rank, where nccl-tests was built with MPI=1
Each line says how many calls it stands for; behind them stands what no line
makes, and why.)",
       replay,
       {traces,
        {"--mpi", &o.mpi,
         "with mpirun, one process per rank; else one process with all ranks (-g)"},
        json("tprof-replay/1")},
       kChoice | kAllFilters},
      {"summary",
       "Totals of a run: what moved, where, how much",
       R"(  tprof summary tprof-traces/train-20260101-120000-0
  tprof summary DIR --per-rank --by dtype
  tprof summary DIR --steps 10- --ops ALLGATHER --sizes 1M- --top 20
  tprof summary DIR --hist ncclAllGather --per-rank
  tprof summary merged.json.gz --json | jq .buckets.ALLGATHER
Exit code: 0 all ranks are there, and closed or ended with no call open and none
behind the others; 1 one is missing, still runs or ended at work, counts are
not whole or nothing was counted; 2 unreadable input. tprof check tells how they ended.)",
       summary,
       {traces,
        json("tprof-summary/1"),
        {"-v,--verbose", &o.verbose,
         "each operation and column, and what ran on which libraries with which settings"},
        {"--per-rank", &o.per_rank, "the buckets of every rank; with --hist its histogram"},
        {"--by", &o.by, about_tables(),
         fmt::format(
             "{}",
             fmt::join(report::by_rows() | std::views::transform(&report::ByRow::name), "|"))},
        {"--top", &o.top,
         "the calls that took longest: on the device, where calls are timed there, else on the "
         "host",
         "N", kHowMany},
        {"--hist", &o.hist,
         "a histogram of the durations of an operation, a bucket, or the NVTX ranges of a name",
         "NAME"},
        {"--epoch", &o.epoch,
         "only what was counted between two resets (tprof_reset, tprof ctl reset), from 0", "N",
         kEpoch},
        only_with("--hist", {"--bins", &o.bins, "of it (default 20)", "N", kHowMany}),
        {"--lines", &o.lines,
         "read event lines too: separates gathers of objects from gathers of tensors"},
        peak},
       kChoice | kAllFilters,
       true},
      {"check",
       "Did all ranks do the same, where did they stop, and is the trace whole",
       R"(  tprof check tprof-traces/train-20260101-120000-0
  tprof check DIR --no-lines      # thousands of ranks: the ends of the files only
  tprof check DIR --json | jq '.findings[] | select(.severity == "error")'
  tprof check DUMPS               # of PyTorch's Flight Recorder: nccl_trace_rank_*
It compares what the hosts called. tprof report tells causes and costs, also
of a rank that the others wait for.
Exit code: 0 no warning and no error, 1 one of these, 2 unreadable input.)",
       check,
       {traces,
        json("tprof-check/1"),
        {"--no-lines", &o.no_lines,
         "read ledgers only: faster, but names an interval instead of an operation"},
        stuck_after},
       kChoice | kRanks | kComm,
       true},
      {"report",
       "Why a job is slower than it should be, and which rank is to blame",
       R"(  tprof report tprof-traces/train-20260101-120000-0
  tprof report DIR -o report.html     # one file, with charts; it needs no network
  tprof report DIR --peak intra=450,inter=50    # which transfers reach less than half of that?
The verdict comes first. What only costs time is a note.
Exit code: 0 no warning and no error, 1 one of these, 2 unreadable input.)",
       report_of,
       {traces,
        {"-o,--output", &o.output, "the page; replaces only pages of tprof report", "FILE.html"},
        {"--json", &o.json, "the page's data, for programs (schema tprof-report/1)"},
        {"--memory", &o.memory_mib,
         "for the calls of all ranks and their replay (default 1024); if a job needs more, only "
         "steps in its middle are analysed",
         "MiB", kMemory},
        peak},
       kChoice | kAllFilters,
       true},
      {"budget",
       "Compares what moved in a step with what should have",
       R"(  tprof budget DIR --model fsdp --params 7e9 --layers 32 --dtype bf16 --reduce-dtype fp32
  tprof budget DIR --model hsdp+tp --params 9e9 --layers 80 --tokens 4096 --hidden 8192
  tprof budget DIR --write budget.json     # what a good run moves,
  tprof budget NEW --budget budget.json    # which CI compares others with
P: --params, R: --root-params, L: --layers, N: --shards, M: --micro-batches;
k: M, or 1 where only the last one reduces. For each rank and step, gathered
and reduced tensors as a whole:
  ddp          ALLREDUCE k P
  zero1 zero2  ALLREDUCE (or REDUCE) k P, ALLGATHER P
  zero3        ALLGATHER P to 2 M P, RESHARDING k P
  fsdp         ALLGATHER M (2 P - R) in M (2 L + 1) calls, and R with each more, up to 2 M P in
               M (2 L + 2), as the root may be gathered again; any of it where R is not given;
               M P in M (L + 1) with --no-reshard-after-forward;
               RESHARDING k P in k (L + 1). A root without weights of its own calls nothing:
               --root-params 0 says so, and where R is not given it may be so
  hsdp         the same, and ALLREDUCE k P / N in k (L + 1)
  tp           ALLREDUCE 2 x --tp-reductions x M L tensors of --tokens x --hidden
Bytes may be more by what shards are padded: N - 1 elements in each of 16
parameters of a layer (FSDP2 pads whole rows, for which --tolerance allows),
and by --tolerance. Norms and other small calls are apart: all-reduces of less
than 16 KiB, others of less than 64 bytes. Where less moved than it should
have, and small ones of the same type may make up what is missing, they are
taken for gradients of small parameters, and a sentence says so. A budget of a run
says how many small calls there are, and which collectives steps beside the
usual one make (evaluations, checkpoints); in its file "others": "allow" lets
there be more, and collectives that it has not.
Exit code: 0 within the budget, 1 not, be it more or less, or a file could not
be read, 2 wrong usage, nothing could be read, or nothing tells steps from
micro-batches, and it asks for --steps or --micro-batches.)",
       budget,
       {traces,
        {"--model", &o.ways, "ddp, zero1, zero2, zero3, fsdp, hsdp or tp, or two such as fsdp+tp",
         "NAME"},
        {"--params", &m.params, "parameters, such as 7e9; with tp those of one of its ranks", "P",
         kParams},
        {"--root-params", &m.root_params,
         "the part in FSDP's root unit, such as embeddings (default: unknown)", "R", kRootParams},
        {"--layers", &m.layers, "layers, each an FSDP unit besides the root (default: any)", "L",
         kCount},
        {"--dtype", &m.dtype, "of parameters and gathers (default bf16)", "TYPE"},
        {"--reduce-dtype", &m.reduce_dtype, "of gradients (default: --dtype)", "TYPE"},
        {"--shards", &m.shards,
         "ranks that share the parameters (default: those of the communicator that scatters)", "N",
         kCount},
        {"--micro-batches", &o.micro_batches, "of a step (default 1, if known)", "M", kCount},
        {"--accumulate", &o.accumulate,
         "gradients are reduced in the last micro-batch (no_sync) or in every one (default: every "
         "for zero2 and zero3, else no_sync)",
         "no_sync|every"},
        {"--no-reshard-after-forward", &m.keeps, "parameters stay for the backward pass"},
        {"--offload", &m.offload, "shards come from the host, and gradients go there"},
        {"--tokens", &m.tokens, "of a micro-batch, for tp", "N", kCount},
        {"--hidden", &m.hidden, "elements of an activation, for tp", "N", kCount},
        {"--tp-reductions", &m.reduced_in_layer,
         "all-reduces of a layer in each pass (default 2: attention and MLP)", "N", kCount},
        {"--budget", &o.budget_file, "a budget of --write, or by hand (schema tprof-budget/1)",
         "FILE"},
        {"--write", &o.write, "writes a budget, a new file, from this run", "FILE"},
        {"--tolerance", &m.tolerance, "percent of the bytes that may differ (default 0)", "PERCENT",
         kPercent},
        {"--steps", &o.steps, "how many the job made, if unknown", "N", kMadeSteps},
        json("tprof-budget-report/1")},
       kChoice | kRanks,
       false,
       {"--model", "--budget", "--write"}},
      {"diff",
       "Differences between two runs: counts, times, settings",
       R"(  tprof diff last-week today
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
       {required({"A", &o.run_a, "folder of rank files, or a merged trace"}),
        required({"B", &o.run_b, "the same, of another run"}),
        {"--fail-on", &o.fail_on, "exit with 1 if these changed, such as calls,time:5%", "LIST"},
        {"--no-lines", &o.no_lines, "read ledgers only: counts without times"},
        json("tprof-diff/1")},
       kAllFilters},
      {"top",
       "A running job's ranks, live in the terminal",
       R"(  tprof top tprof-traces/train-20260101-120000-0
  tprof top DIR --once                          # one table: totals
  tprof top DIR --once --interval 1 --json      # with rates, over one second
Keys: q quits; s or 1 to 9 chooses the column to sort by; b the bucket; r
counts from now on. It reads the ring files of this node, of ranks elsewhere
the snapshots; the job notices nothing.)",
       top,
       {folder,
        {"--interval", &o.interval_s,
         "between updates (default 2); with --once: the time for rates (default: totals only)",
         "SECONDS", kInterval},
        {"--once", &o.once, "prints one table and ends, as it does without a terminal"},
        {"--json", &o.json, "once, for programs (schema tprof-top/1)"}},
       kChoice},
      {"tail",
       "The lines of a running job's ranks, as they are written",
       R"(  tprof tail DIR | jq -c 'select(.name == "tprof_step" and .pid == 0)'
  tprof tail DIR --from-start --format table
Ranks that come later, and those of a restart, are followed from their first
line. A call's line is in the file up to 200 ms after it. Ends when the job
has ended.)",
       tail,
       {folder,
        {"--format", &o.format,
         "jsonl (default): the files' lines, with the rank for pid; table: calls and steps, for "
         "people",
         "jsonl|table"},
        {"--from-start", &o.from_start, "also the lines written so far"}}},
      {"metrics",
       "Counters of a running job for Prometheus",
       R"(  tprof metrics DIR                              # once, on standard output
  tprof metrics DIR --listen 9464                # http://127.0.0.1:9464/metrics
  tprof metrics DIR --textfile /var/lib/node_exporter/tprof.prom --interval 15
The file is renamed over, and written once or until the job has ended.)",
       metrics,
       {folder,
        {"--textfile", &o.textfile, "for node_exporter's textfile collector", "FILE"},
        {"--listen", &o.listen,
         "serves GET /metrics until it is ended; a port alone is on the loopback", "ADDR:PORT"},
        only_with("--textfile",
                  {"--interval", &o.interval_s,
                   "rewrites the file at this interval (default: once)", "SECONDS", kInterval})},
       kChoice,
       false,
       {"--textfile", "--listen"},
       true},
      {"watch",
       "Says when something is wrong with a running job, and runs a command",
       R"(  tprof watch DIR
  tprof watch DIR --exec 'py-spy dump --native --pid {pid} > stack-{rank}.txt'
  tprof watch DIR --exec 'curl --data-binary @- https://example.org/alert' --stuck-after 120
It prints what tprof check calls a warning or an error, once for each kind. Then
the shell runs CMD, with what was found on standard input, a JSON object a
line; where {pid} or {rank} is in it, once for each process of these findings
that runs on this machine. Ends with the job, and exits as check does.)",
       watch,
       {folder,
        {"--exec", &o.command, "the command (default: none, findings are printed)", "CMD"},
        {"--interval", &o.interval_s,
         "between checks (default: a quarter of --stuck-after, at most 5)", "SECONDS", kInterval},
        stands_for},
       kChoice},
      {"ctl",
       "Tells running processes to write lines, or not, to time calls, or to dump",
       R"(  tprof ctl DIR stop               # no event lines from now on; the counts stay exact
  tprof ctl DIR start
  tprof ctl DIR window 3           # lines of three whole steps, the same on all ranks, then none
  tprof ctl DIR window 3@120       # from the 120th step on: the same for the ranks of each machine
  tprof ctl 4711 timing events     # times calls on the device; host: not any more
  tprof ctl DIR dump               # what was recorded is in the rank files now
  tprof ctl DIR reset              # tprof_totals counts from here
Processes of this machine and this user are told, and answer within 200 ms.
The steps that TPROF_SCHEDULE chose stay chosen. With TPROF_SCHEDULE=ctl there
are no lines until start.
Exit code: 0 all did it, 1 not all of them, 2 wrong usage or unreadable input.)",
       ctl,
       {required({"DIR|PID", &o.folder, "folder of a job's rank files, or a process"}),
        required({"COMMAND", &o.command, "start, stop, window N, dump, reset, or timing MODE"}),
        {"N|MODE", &o.argument, "steps; host, events, or events:N"},
        json("tprof-ctl/1")},
       kChoice},
      {"doctor",
       "Tells what would be or was traced, and what is missed",
       R"(  tprof doctor                                  this machine and environment
  tprof doctor -- torchrun train.py             what would be traced; runs nothing of it
  tprof doctor tprof-traces/train-20260101-120000-0      what was traced, and what was not
Exit code: 0 all well, 1 a warning or an error, 2 wrong usage or unreadable
input.)",
       doctor,
       {{"PATH|CMD", &o.words,
         "folder of rank files, or a command after --; neither: this machine"},
        json("tprof-doctor/1")},
       kChoice},
      {"coverage",
       "Every function that is counted, how, and what is not",
       R"(  tprof coverage
  tprof coverage --json | jq -r '.functions[] | select(.buckets | index("MANAGED")) | .name'
It is the libtprof.so beside this program that tells. since: the version of
NCCL or CUDA that brought a function; 2.7 and 3.2 are the oldest that are
known, and may stand for older ones. tprof doctor DIR tells what a program
used of it, and what moved data past it.)",
       coverage,
       {json("tprof-coverage/1")}},
      {"recover",
       "Closes the rank files of processes that were killed",
       R"(  tprof recover tprof-traces/train-20260101-120000-0
  tprof recover rank-00003.json
tprof run does this by itself when its command has ended. Without it summary,
merge and check read ring files as they are; recovering makes rank files that
can be copied and kept.
Exit code: 0 every rank file is closed, 1 some were left as they are, 2
unreadable input.)",
       recover,
       {required({"PATH", &o.paths, "folder of rank files, or rank files"}),
        {"--force", &o.force, "treat processes of other hosts as dead"}}},
      {"anonymize",
       "A copy of traces without hosts, paths and commands",
       R"(  tprof anonymize tprof-traces/train-20260101-120000-0 -o for-the-issue
  tprof anonymize trace.json.gz -o for-the-issue
Hosts, runs, commands, folders, names of threads and communicators, GPU ids
and values of settings become host-1, run-1 and so on, the same in all files.
Counts, times, ranks, process ids and the names of libraries stay. Look at the
result before you publish it.)",
       anonymize,
       {required({"PATH", &o.paths, "folder of rank files, rank files, or merged traces"}),
        required({"-o,--output", &o.output, "a new folder for the copies", "DIR"})}},
      {"completion",
       "Prints a script that completes tprof's commands and options",
       R"(  source <(tprof completion bash)
  tprof completion zsh > ~/.zfunc/_tprof
  tprof completion fish | source)",
       completion,
       {required({"SHELL", &o.command, "bash, zsh or fish", "bash|zsh|fish"})}},
      {"manual",
       "Writes the manual pages",
       R"(  tprof manual ~/.local/share/man/man1
  man tprof-summary)",
       manual,
       {required({"DIR", &o.folder, "folder for them, made if missing"})}},
  };
  for (CommandRow& row : rows) {
    for (Option& option : shared_options(o, row.shared)) row.options.push_back(std::move(option));
  }
  return rows;
}

}  // namespace tprof::cli
