// The options of the commands for jobs that run: rows of option_table.cpp.
#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "cli/numbers.h"
#include "cli/option_table.h"

namespace tprof::cli {

std::vector<CommandRow> live_rows(Options& o, const Option& run_id, const Option& attempt,
                                  const Option& stands_for) {
  const Option folder = {
      "DIR", &o.folder, "folder of a job's rank files (default: the newest run in ./tprof-traces)"};
  const auto positive_seconds = [](CLI::Option* option) {
    take(option, {0.01, 1e6, "2", kSeconds});
  };
  return {
      {"top",
       "A running job's ranks, live in the terminal",
       R"(
Examples:
  tprof top tprof-traces/train-20260101-120000-0
  tprof top DIR --once                          # one table: totals
  tprof top DIR --once --interval 1 --json      # with rates, over one second
Keys: q quits; s or 1 to 9 chooses the column to sort by; b the bucket; r
counts from now on. It reads the ring files of this node, of ranks elsewhere
the snapshots; the job notices nothing.)",
       top,
       {folder,
        {"--interval", &o.interval_s,
         "from one look to the next (default 2); with --once: the time that rates are over "
         "(default: totals only)",
         "SECONDS", false, positive_seconds},
        {"--once", &o.once, "prints one table and ends, as where standard output is no terminal"},
        {"--json", &o.json, "once, for programs (schema tprof-top/1)"},
        run_id,
        attempt}},
      {"tail",
       "The lines of a running job's ranks, as they are written",
       R"(
Examples:
  tprof tail DIR | jq -c 'select(.name == "tprof_step" and .pid == 0)'
  tprof tail DIR --from-start --format table
Ranks that come later, and those of a restart, are followed from their first
line. A call's line is in the file up to 200 ms after it. Ends when the job
has ended.)",
       tail,
       {folder,
        {"--format", &o.format,
         "jsonl (default): the files' lines, with the rank for pid; table: calls and steps, for "
         "people",
         "WHAT", false,
         [](CLI::Option* option) {
           const std::map<std::string, live::Format> formats = {{"jsonl", live::Format::jsonl},
                                                                {"table", live::Format::table}};
           option->transform(CLI::CheckedTransformer(formats).description(""));
         }},
        {"--from-start", &o.from_start, "also what was written before"}}},
      {"metrics",
       "Counters of a running job for Prometheus",
       R"(
Examples:
  tprof metrics DIR --listen 9464                # http://127.0.0.1:9464/metrics
  tprof metrics DIR --textfile /var/lib/node_exporter/tprof.prom --interval 15
The file is renamed over, and written once or until the job has ended.)",
       metrics,
       {folder,
        {"--textfile", &o.textfile, "for node_exporter's textfile collector", "FILE"},
        {"--listen", &o.listen,
         "serves GET /metrics; a port alone is the loopback's; until it is ended", "ADDR:PORT"},
        {"--interval", &o.interval_s, "writes the file again so often (default: once)", "SECONDS",
         false, positive_seconds},
        run_id,
        attempt}},
      {"watch",
       "Says when something is wrong with a running job, and runs a command",
       R"(
Examples:
  tprof watch DIR
  tprof watch DIR --exec 'py-spy dump --native --pid {pid} > stack-{rank}.txt'
  tprof watch DIR --exec 'curl --data-binary @- https://example.org/alert' --stuck-after 120
It prints what tprof check calls a warning or an error, once for each kind. Then
the shell runs CMD, with what was found on standard input, a JSON object a
line; where {pid} or {rank} is in it, once for each process of these findings
that runs on this machine. Ends with the job, and exits as check does.)",
       watch,
       {folder,
        {"--exec", &o.command, "the command (default: none, what was found is printed)", "CMD"},
        {"--interval", &o.interval_s,
         "from one look to the next (default: a quarter of --stuck-after, at most 5)", "SECONDS",
         false, positive_seconds},
        stands_for,
        run_id,
        attempt}},
      {"ctl",
       "Tells running processes to write lines, or not, to time calls, or to dump",
       R"(
Examples:
  tprof ctl DIR stop               # no event lines from now on; the counts stay exact
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
       {{"DIR|PID", &o.folder, "folder of a job's rank files, or a process", nullptr, true},
        {"COMMAND", &o.command, "start, stop, window N, dump, reset, or timing MODE", nullptr,
         true},
        {"N|MODE", &o.argument, "steps; host, events, or events:N"},
        {"--json", &o.json, "for programs (schema tprof-ctl/1)"},
        run_id,
        attempt}}};
}

}  // namespace tprof::cli
