// Words for which processes there are and how they ended.
#include "report/words.h"

namespace tprof::report {

using diagnose::Say;

std::span<const Words> words_of_ranks() {
  static constexpr Words kWords[] = {
      {Say::more_of_kind, "and {more:,} more findings of kind {kind}[: {ranks}]"},
      {Say::more, "and {more} more"},
      {Say::then, "then {what}"},
      {Say::missing_rank,
       "{missing} of {world_size} ranks {missing?has|have} no trace: {ranks:list}[; the files of "
       "{left} can't be read]",
       "{all_left?see what is said of these files|if they ran on other hosts, bring their rank "
       "files into one folder}"},
      {Say::missing_member,
       "communicator {communicator} has {nranks} ranks, of which {seen} have a trace here ({who})",
       "if the others ran on other hosts, bring their rank files into one folder; if they ran "
       "here, tprof could not see their calls: see tprof doctor"},
      {Say::duplicate_rank,
       "rank {rank} is claimed by 2 processes, which are the same rank of one communicator: {file} "
       "and {other}",
       "one of them is a copy, or of another run: leave it out"},
      {Say::rank_groups,
       "{groups:,} groups of processes with ranks of their own are one job, as communicators join "
       "them: {list}; what is said of a rank is of all that have its number",
       "if each rank should be there once, check the RANK variable of the launcher"},
      {Say::rank_group, "{who} on {host} ({command})"},
      {Say::world_sizes_differ,
       "ranks were told different world sizes: {sizes}; here it is {taken}",
       "check the WORLD_SIZE variable of the launcher; TPROF_RUN_ID keeps two jobs apart"},
      {Say::other_run, "{beside}", "--run NAME and --attempt N show another"},
      {Say::assumed_job,
       "nothing but the folder connects these processes: no run id, no shared communicator",
       "set TPROF_RUN_ID, or start the job with tprof run"},
      {Say::skipped, "{reason}"},
      {Say::unreadable, "{reason}"},
      {Say::running,
       "{who} {who:is} still running: the counts are as of now[; nobody has made a call for "
       "{quiet}]"
       "[, and the ranks are not equally far: {behind} made {made:,} {made?collective|collectives} "
       "of {most:,} on communicator {communicator}][, and every rank came to the last collective, "
       "{last}: the program does something else (a checkpoint, an evaluation), or the devices or "
       "the network hold it up][; a job is said to hang after {stuck_after} "
       "without a call (--stuck-after of tprof check)]",
       "{last?if it hangs, look at the stack of a rank and at NCCL's own log (NCCL_DEBUG=INFO): "
       "py-spy dump --native --pid |}[{pid} on {host}]"},
      {Say::snapshot,
       "{who} did not close, and {forced?there was no ring file|no ring file is to be seen from "
       "here}: known by snapshot until {until} or later; {forced?what came after it is not "
       "known|whether the program still runs is not known}",
       "{ask?tprof recover on the host that it ran on, or with --force|}"},
      {Say::not_closed,
       "{who} {idle?ended without closing: killed by a signal, or a way of ending that tprof does "
       "not see; no call was open, and the counts are exact|did not close (killed or crashed): the "
       "counts are exact, recovered from the ring file}[; nobody had made a call for {quiet} by "
       "then][; every rank came to the last collective, {last}]",
       "{ask?the launcher's output tells how each rank ended: its exit code, or the signal|}[; "
       "look at the output of the ranks from {since} on]"},
      {Say::exited, "{who} exited with status {status}",
       "{who?its|their} own output tells why: Python prints an exception there"},
      {Say::partial,
       "{who} did not close, and not all counts fitted into the ring file (disk full, less than 1 "
       "GiB left in /dev/shm, or a file size limit): the counts are lower bounds",
       "free space where the ring file was, or raise ulimit -f"},
      {Say::lost,
       "{who} {short?left a compressed file that is cut short: what is behind the cut is not known|"
       "did not close, and there is no ring file}[: the counts are exact until {until} at least]"
       "[; no counts are known of {unknown:,} {unknown?process|processes}: what "
       "{unknown?its file has|their files have} is in merge and export]",
       "{short?copy the file again, or compress it again where it was written|}"},
  };
  return kWords;
}

}  // namespace tprof::report
