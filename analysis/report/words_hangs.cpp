// Words for where ranks stand, and who ended first.
#include "report/words.h"

namespace tprof::report {

using diagnose::Say;

#define SINCE "[ since {since}][, {before_end} before the end of {who?its trace|their traces}]"
#define FIRST "{who} ended first{all_known?| of those whose end is known}: "
#define STOOD "[, {stood} after the last call of any rank]"
#define LONGER "[; the others lived for {longer} more]"
#define CLOSED "{status?exited with status|closed in order}[ {status}] "
#define WHY_CLOSED "{status?| (an exception, or an early exit?)}"
#define CLOSED_AT CLOSED "at {at}" WHY_CLOSED

std::span<const Words> words_of_hangs() {
  static constexpr Words kWords[] = {
      // A hang or a stop says one of these of where ranks stand.
      {Say::stand_inside, "{everybody?all ranks, |}{who} {who:is} inside {call}" SINCE
                          "{ended?, and did not return|}{hung_or_killed? (it hung, or was "
                          "killed there)|}{killed? (killed or crashed there)|}"},
      {Say::never_made_other_end, "{who} never called the {function} for which {called}[: {then}]"},
      {Say::ends_of_messages,
       "{who} called {sent?ncclSend to|ncclRecv from} {other} {calls:,} {calls?time|times}, which "
       "called {sent?ncclRecv|ncclSend} {theirs:,} {theirs?time|times}: that is one too few "
       "there, or one too many here"},
      {Say::message_of, "message {seq} {sent?to|from} {other} of communicator {communicator}"},
      {Say::never_came,
       "{who} {until?had not come by |never came to}[{until} to] collective {seq}[ ({function})] "
       "of communicator {communicator}, which {came} called: {then}"},
      {Say::not_come,
       "{who} {until?had not come by |never came to}[{until} to] {call}, which {came} {came:is} "
       "inside[ since {since}]: {then}"},
      {Say::some_not_come,
       "{missing} of {who} never came to {call}, which {came} {came:is} inside[ since {since}]; "
       "which of them have to come is not known"},
      {Say::got_back,
       "{who} came to {call} and got {error} back, and {came} {came:is} inside it[ since {since}]"},
      {Say::not_all_came,
       "{missing:,} of its {ranks:,} ranks {missing?has|have} not come to it: who that is, the "
       "traces do not tell"},
      {Say::only_such_call,
       "no rank has called another {function} of {size} there: it may be a call too many of {who}"},
      {Say::runs_unknown, "whether it runs is not known"},
      {Say::closed_before, CLOSED "before it" WHY_CLOSED},
      {Say::stood_still,
       "{who} stood still before it[, for {quiet}]{reads?, behind a copy from its device: its host "
       "may wait "
       "for that, and the device for those of others|}"},
      {Say::devices_not_through,
       "made no call[ for {quiet}], but devices are not through with collective {seq} either, "
       "which "
       "all of them called: its host may wait for its device"},
      {Say::stopped_there, "the calls end there, which alone proves no divergence"},
      {Say::wait_for_each_other, "{who} wait for each other: {each}"},
      {Say::waits_in, "{who} in {call}"},
      // Their calls.
      {Say::open_call,
       "{function}[, collective {collective}][ with its rank {peer}][ (number {number})][ of "
       "communicator {communicator}]"},
      {Say::in_group, "{call}, in a group of {calls:,}"},
      {Say::collective_of, "collective {seq} of communicator {communicator}"},
      {Say::inside, "{who} {who:is} inside {call}" SINCE},
      {Say::called, "{who} called collective {seq} of communicator {communicator}[; {by}: {call}]"},
      {Say::waits_for, "{called}: it waits for {who}"},
      {Say::last_call,
       "the last call of {who} that returned: {call}; {lives?it made none for|its trace ends} "
       "{none_for}{lives?| later}"},
      {Say::last_call_unknown, "which call of {who} was the last to return, its lines do not tell"},
      {Say::within_ranges,
       "{who} {who:is} within NVTX range{ranges?|s} {path:/}{ranges?| (innermost "
       "last)}{other_thread? on another thread|}[ ({thread})]" SINCE},
      {Say::range_named, "\"{name}\"[ ({domain})]"},
      // Evidence, and what to do.
      {Say::returned_to, "{who} called it too, and it returned"},
      {Say::nobody_missing,
       "every rank came: nobody is missing{hang?, so the devices or the network hold it up|}"},
      {Say::lines_tell_how_long, "how long it stood there, lines tell"},
      {Say::in_no_call,
       "{who} was in no call that tprof records: look at its own code (an exception, data loading) "
       "and at waits for the device (cudaStreamSynchronize is not recorded)"},
      {Say::did_not_close, "{who} did not close (killed or crashed); the counts are exact"},
      {Say::end_unknown, "what {who} did at the end is not known"},
      {Say::unknown_after,
       "what {who} did after {who?|their snapshots (the oldest is of }{until}{who?|)} is not "
       "known"},
      {Say::nothing_known, "nothing is known of {who}"},
      {Say::may_wait_for_device,
       "a host waits in a copy for its device, and that may wait for the devices of others"},
      {Say::process_stopped,
       "{who} {who:is} stopped, {traced?held by a debugger (state t|by a signal (state T} in "
       "/proc), "
       "and made no call for {quiet}"},
      {Say::let_go_on, "let it go on: kill -CONT {pids} on {host}"},
      {Say::let_go_of, "look at what holds it: grep TracerPid /proc/{pid}/status on {host}"},
      {Say::meanwhile, "meanwhile {what}"},
      {Say::hosts_view,
       "NCCL calls return when the work is enqueued: this is what the hosts called, not what the "
       "devices did"},
      {Say::look_at_stack,
       "look at its stack{snapshot?, if it runs|}: py-spy dump --native --pid {pid} on {host}"},
      {Say::look_at_output,
       "look at the output of {who} on {host} {from?from|around} {at}{from? on|}"},
      {Say::lost_device,
       "the {who?device|devices} of {who} did not end what the devices of others ended: {who?it "
       "is|they are} lost, or cut off from them",
       "look at {who?this GPU and its host|these GPUs and their hosts}: Xid errors in dmesg, "
       "nvidia-smi -q, the links between them; the other ranks wait for {who?it|them}"},
      {Say::did_not_end,
       "{who} called {function}, collective {seq} of communicator {communicator}: its device did "
       "not end it, and {others?that|those} of {others} did"},
      {Say::devices_stand,
       "{who} called {function}, collective {seq} of communicator {communicator}, and no device "
       "ended it: nobody is missing, so the devices or the network hold it up"},
      {Say::look_at_rank,
       "look at {who}: the end of its output, its stack if it still runs (py-spy dump --native), "
       "its GPU (nvidia-smi, Xid errors in dmesg)"},
      {Say::dumps_tell,
       "of {who} dumps of PyTorch's Flight Recorder tell, which it writes when a call times out: "
       "what came later is not known, and messages are counted from the first that has not ended"},
      {Say::look_at_network, "look at the network and at NCCL's own log (NCCL_DEBUG=INFO)"},
      {Say::same_order,
       "calls that wait for each other must be made in the same order on all ranks; sends and "
       "receives of a pair belong into one ncclGroupStart and ncclGroupEnd (batch_isend_irecv)"},
      // Collectives of several communicators in orders that do not fit.
      {Say::group_order,
       "{who} called {first} before {then}, {others} the other way round: {deadlock?a deadlock, as "
       "a stream runs one after the other|NCCL needs the same order on all ranks}",
       "look for what decides in the program which of the two comes first, or whether one is made: "
       "there something depends on the rank; what waits for each other has to be called in one "
       "order on all ranks"},
      {Say::order_circle,
       "{who} called collectives or messages in orders that do not fit, in which each waits for "
       "the next: {deadlock?a deadlock, as a stream runs one after the other|NCCL needs the same "
       "order on all ranks}",
       "collectives of several communicators have to be called in one order on all ranks, and "
       "sends and receives that wait for each other belong into one ncclGroupStart and "
       "ncclGroupEnd (batch_isend_irecv)"},
      {Say::called_then, "{who}[ ({by})]: {first} at {at}, then {then} at {then_at}"},
      {Say::not_through,
       "their devices are not through with any of these, and are with those before"},
      {Say::no_call_since, "{who} made no call for {quiet}{ended? before their traces end|}"},
      // Who ended first.
      {Say::closed_first, FIRST CLOSED_AT STOOD LONGER},
      {Say::killed_first, FIRST "killed or crashed, last heard of at {at}" STOOD LONGER},
      {Say::first_unknown,
       "{closed} " CLOSED_AT ", about when {killed} {killed?was|were} killed or crashed: who was "
       "first, the traces do not tell"},
      {Say::killed_together,
       "{who} were killed or crashed[: {silent} fell silent first, {longer} before the others, "
       "which "
       "does not prove that it ended first]{known?|; who was first, the traces do not tell}",
       "the launcher's output tells which rank ended first, and how"},
      {Say::fell_silent,
       "{who} was last heard of at {at}, the others for {longer} more (at every call, and at least "
       "five times a second)"},
  };
  return kWords;
}

}  // namespace tprof::report
