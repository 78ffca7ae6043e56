// Every sentence of a finding, with what to do about it.
#include "report/words.h"

namespace tprof::report {
namespace {

using check::Say;

#define ALIKE_ENDS                                                                              \
  "every ncclSend needs an ncclRecv of the same count and type on the other rank, in the same " \
  "order"

constexpr std::string_view kMoreRoom =
    "{write_error?what a process says on standard error tells why: TPROF_OUTPUT_DIR is full, or "
    "the program closed our file|}{ring?raise TPROF_RING (NVTX ranges leave half of it to "
    "calls)|}{quota?raise TPROF_QUOTA (NVTX ranges have a quarter of it on top), or write lines of "
    "fewer ranks with TPROF_RANKS|}";

#define SINCE "[ since {since}][, {before_end} before the end of {who?its trace|their traces}]"
#define FIRST "{who} ended first{all_known?| of those whose end is known}: "
#define STOOD "[, {stood} after the last call of any rank]"
#define LONGER "[; the others lived for {longer} more]"
#define CLOSED "{status?exited with status|closed in order}[ {status}] "
#define WHY_CLOSED "{status?| (an exception, or an early exit?)}"
#define CLOSED_AT CLOSED "at {at}" WHY_CLOSED

// A sentence about what a library or tool brings begins with the files that were found, and with
// which processes have them.
#define IN_PATHS "{paths}[ ({some})]: "

#define SLOW_ONES "{who}[, all of host {host}]{stage?, one stage of the pipeline|}{named?,|} "
#define WITHOUT_THAT                                                                            \
  "[ in {in_steps} of {of_steps} steps][, {which}][, every {period}]: [leaving {after} aside, " \
  "]without that a step would be [{share} shorter][ ({least} to {most})]"
#define BEFORE_WORK                                                                       \
  "look at what the program does before the first kernel of a step: usually it loads or " \
  "prepares data"
#define RING_FOLDER "set TPROF_RING_DIR to a folder on tmpfs, ext4 or XFS that may be written to"
#define OTHER_LOADER "{program} has a dynamic loader that is not glibc's: {loader}"

constexpr Words kWords[] = {
    // Words for which processes there are and how they ended.
    {Say::more_of_kind, "and {more:,} more findings of kind {kind}[: {ranks}]"},
    {Say::more, "and {more} more"},
    {Say::then, "then {what}"},
    {Say::missing_rank,
     "{missing} of {world_size} ranks {missing?has|have} no trace: {ranks:list}[; the files of "
     "{left} can't be read]",
     "{all_left?see what is said of these files|if they ran on other hosts, bring their rank files "
     "into one folder}"},
    {Say::missing_member,
     "communicator {communicator} has {nranks} ranks, of which {seen} have a trace here ({who})",
     "if the others ran on other hosts, bring their rank files into one folder; if they ran here, "
     "tprof could not see their calls: see tprof doctor"},
    {Say::duplicate_rank,
     "rank {rank} is claimed by 2 processes, which are the same rank of one communicator: {file} "
     "and {other}",
     "one of them is a copy, or of another run: leave it out"},
    {Say::rank_groups,
     "{groups:,} groups of processes with ranks of their own are one job, as communicators join "
     "them: {list}; what is said of a rank is of all that have its number",
     "if each rank should be there once, check the RANK variable of the launcher"},
    {Say::rank_group, "{who} on {host} ({command})"},
    {Say::world_sizes_differ, "ranks were told different world sizes: {sizes}; here it is {taken}",
     "check the WORLD_SIZE variable of the launcher; TPROF_RUN_ID keeps two jobs apart"},
    {Say::other_run, "{beside}", "--run NAME and --attempt N show another"},
    {Say::assumed_job,
     "nothing but the folder connects these processes: no run id, no shared communicator",
     "set TPROF_RUN_ID, or start the job with tprof run"},
    {Say::skipped, "{reason}"},
    {Say::unreadable, "{reason}"},
    {Say::dumped_while_running,
     "the job ran while its dumps were written, so they don't tell where it stands: the device of "
     "{who} had ended {function}, collective {seq} of communicator {communicator}, before {others} "
     "called it"},
    {Say::running,
     "{who} {who:is} still running: the counts are as of now[; nobody has made a call for "
     "{quiet}][, and the ranks are not equally far: {behind} made {made:,} "
     "{made?collective|collectives} of {most:,} on communicator {communicator}][, and every rank "
     "came to the last collective, {last}: the program does something else (a checkpoint, an "
     "evaluation), or the devices or the network hold it up][; a job is said to hang after "
     "{stuck_after} without a call (--stuck-after of tprof check)]",
     "{last?if it hangs, look at the stack of a rank and at NCCL's own log (NCCL_DEBUG=INFO): "
     "py-spy dump --native --pid |}[{pid} on {host}]"},
    {Say::snapshot,
     "{who} did not close, and {forced?there was no ring file|no ring file is to be seen from "
     "here}: known by snapshot until {until} or later; {forced?what came after it is not "
     "known|whether the program still runs is not known}",
     "{ask?tprof recover on the host that it ran on, or with --force|}"},
    {Say::not_closed,
     "{who} {idle?ended without closing: killed by a signal, or a way of ending that tprof does "
     "not see; no call of NCCL was open, and the counts are exact|did not close (killed or "
     "crashed): the "
     "counts are exact, recovered from the ring file}[; nobody had made a call for {quiet} by "
     "then][; every rank came to the last collective, {last}]",
     "{ask?the launcher's output tells how each rank ended: its exit code, or the signal|}[; look "
     "at the output of the ranks from {since} on]"},
    {Say::exited, "{who} exited with status {status}",
     "{who?its|their} own output tells why: Python prints an exception there"},
    {Say::partial,
     "{who} did not close, and not all counts fitted into the ring file (disk full, less than 1 "
     "GiB left in /dev/shm, or a file size limit): the counts are lower bounds",
     "free space where the ring file was, or raise ulimit -f"},
    {Say::lost,
     "{who} {short?left a compressed file that is cut short: what is behind the cut is not "
     "known|did not close, and there is no ring file}[: the counts are exact until {until} at "
     "least][; no counts are known of {unknown:,} {unknown?process|processes}: what {unknown?its "
     "file has|their files have} is in merge and export]",
     "{short?copy the file again, or compress it again where it was written|}"},
    // Words for what ranks called, and how long others waited for it.
    {Say::late,
     "{who} came last to {last:,} of {collectives:,} collectives, {behind} behind the last but one "
     "all together{across_hosts?|, of the ranks of its host}",
     "look at what it did before {latest_at}; all of them: tprof summary --by rank"},
    {Say::latest_arrival,
     "the latest: {late} late to {function}, collective {seq} of communicator {communicator}"},
    {Say::arrivals_are,
     "this is when {on_device?the devices came to it|the hosts called it: what the devices did "
     "then is not known}"},
    {Say::unmatched_p2p,
     "communicator {communicator} ({nranks} ranks): {from} called ncclSend to {to} {sends:,} "
     "{sends?time|times}, which called ncclRecv from it {receives:,} {receives?time|times}[: "
     "{function} {alone} has no other end][: message {differs} is the first that does not fit]",
     ALIKE_ENDS},
    {Say::p2p_sizes,
     "communicator {communicator} ({nranks} ranks): message {seq} from {from} to {to} does not "
     "fit: {sent} sent, {received} to be received[; {pairs:,} pairs of ranks have one such][, "
     "{odd} in each]",
     ALIKE_ENDS},
    {Say::sizes_differ_too,
     "message {seq} from {from} to {to}: {sent} sent, {received} to be received"},
    {Say::end_of_message,
     "{who} called {function} {seq} {send?to|from} {other} of {bytes} at {at}[, in a group of "
     "{group:,}][; the one before: {before}][; the next: {then}]"},
    {Say::totals_unmatched,
     "communicator {communicator} ({nranks} ranks): {sends:,} ncclSend and {receives:,} ncclRecv: "
     "not all have an other end",
     "which ranks it is, event lines of all of them tell (TPROF_EVENTS, TPROF_RANKS)"},
    {Say::failed,
     "{who}: calls were refused or only simulated, alone or with their group ({calls})"},
    {Say::refused, "{who}: {function}[ of communicator {communicator}] returned {error}, at {at}",
     "look at NCCL's own log of that rank (NCCL_DEBUG=INFO)"},
    {Say::unfinished, "{who}: calls never returned ({calls})"},
    {Say::counted_names, "{n:,} {name}"},
    {Say::call,
     "{function} of {count:,} {dtype}{bytes?s|}[, {reduce}][, {collective?root|peer} "
     "{peer}]{captured?, captured into a graph|}[, at {at}]"},
    {Say::launch, "{function}{captured?, captured into a graph|}[, at {at}]"},
    // Words for what is missing or contradictory in the files.
    {Say::overflow,
     "a total is larger than 64 bits can hold: what is given as {most:,} is a lower bound",
     "if that can't be, a rank file is damaged: summary --per-rank tells which"},
    {Say::dropped,
     "{lines:,} counted {lines?event|events} of {who} {lines?has|have} no line in the timeline (by "
     "reason: {reasons})",
     kMoreRoom},
    {Say::dropped_ranges,
     "{lines:,} NVTX {lines?range|ranges} of {who} {lines?has|have} no line in the timeline (by "
     "reason: {reasons})",
     kMoreRoom},
    {Say::window_alone, "{who}: the file of a window alone: the counts are those of its lines",
     "the rank file has those of the whole run: {rank_file}"},
    {Say::missing_windows,
     "{who}: {missing:,} of {all:,} window files {missing?is|are} missing, so {missing?its|their} "
     "calls are in no timeline; the counts are those of the whole run"},
    {Say::seq_gap,
     "{who}: {collectives:,} {collectives?collective|collectives} of communicator {communicator} "
     "{collectives?has|have} {gap?no line|two lines}, although no line was dropped[; the first is "
     "{first}]",
     "was the file edited or cut together? The counts come from the ledger and stand"},
    {Say::ledger_decreased, "{who}: a later ledger says less than an earlier one, in {file}",
     "was the file edited or cut together? Its totals are not to be trusted"},
    {Say::fewer_collectives,
     "the ledger at byte {offset} says {now} {now?collective|collectives} of communicator {comm}, "
     "one before it {before}"},
    {Say::fewer_calls,
     "the ledger at byte {offset} says {now} {now?call|calls} of {function} ({dtype}, communicator "
     "{comm}, size class {bytes_class}, mode {mode}), one before it {before}"},
    {Say::ledger_lines, "{who}: ledger and event lines disagree although no line was dropped",
     "was the file edited or cut together? If not, this is a bug in tprof: please report it with "
     "this file (tprof anonymize takes names out)"},
    {Say::sums_differ,
     "{captured?captured |}{function} of {dtype}[ on communicator {communicator}]: the ledger has "
     "{ledger}; the lines {lines}"},
    {Say::sums,
     "{calls:,} {calls?call|calls}, {bytes:,} {bytes?byte|bytes}[, {unfinished} unfinished]"},
    {Say::clock_step,
     "the wall clock of {host} ({who}) was set {back?back|forward} by {by} between {from} and {to}",
     "times of this host before and after it do not compare with other hosts' times: keep the "
     "clocks with chrony or ntpd, and set them before the job starts"},
    {Say::untimed,
     "{calls:,} {calls?call|calls} of {who} {calls?has|have} no device time ({why})[: {reason}]",
     "[{reason:advice}]"},
    {Say::exposure_unknown,
     "exposed time unknown for {calls:,} of {of:,} {of?call|calls}, on {who} ({why})[: {reason}]",
     "[{reason:advice}]"},
    {Say::one_queue,
     "CUDA_DEVICE_MAX_CONNECTIONS=1[ on {who}]{events?: TPROF_TIMING=events is not obeyed, as "
     "timing events would keep communication from overlapping, and no call has a device "
     "time|}{gathers?; all-gathers and reduce-scatters were called, and those of FSDP lose their "
     "overlap with computation under that setting|}",
     "TPROF_TIMING=cupti gives device times with it{gathers?; tensor and sequence parallelism want "
     "the setting, a job that has FSDP alone should not set it|}"},
    // The reasons.
    {Say::untimed_no_context, "no CUDA context could be asked, or the stream was capturing"},
    {Say::untimed_no_pair, "more were on their way at a time than there is room for",
     "time fewer of them: TPROF_TIMING=events:16 takes one of 16"},
    {Say::untimed_mixed, "they are in one group or batch with calls of other kinds or sizes"},
    {Say::untimed_in_progress, "NCCL was still enqueueing them when they returned"},
    {Say::untimed_sync, "the host waits for a synchronous copy, so its time is the host's"},
    {Say::untimed_unread,
     "the process ended, or the device failed, before their ends could be read"},
    {Say::untimed_device, "the driver refused to time them"},
    {Say::untimed_no_record, "CUPTI has no record of them", "try TPROF_TIMING=events"},
    {Say::untimed_impossible, "CUPTI told times that can't be", "try TPROF_TIMING=events"},
    {Say::untimed_tool, "the program wanted CUPTI for itself before they were read",
     "time without that tool, or with TPROF_TIMING=events"},
    {Say::untimed_order,
     "the call before each on its communicator was on another stream, and its end is not known"},
    {Say::exposure_no_launch, "no kernel of the program was seen on their device"},
    {Say::exposure_host_late,
     "a stream ran dry at an unknown moment, since the host came late with its next launch",
     "TPROF_TIMING=cupti tells how long the device was busy with kernels"},
    {Say::exposure_no_pair, "all pairs of events were in use, so that computation was not marked"},
    {Say::exposure_unread, "the end of the computation beside them was not read"},
    {Say::exposure_no_room, "there were too many streams or calls at a time"},
    {Say::exposure_no_clock, "the device's clock was not known"},
    // Words for where ranks stand, and who ended first.
    // A hang or a stop says one of these of where ranks stand.
    {Say::stand_inside, "{everybody?all ranks, |}{who} {who:is} inside {call}" SINCE
                        "{ended?, and did not return|}{hung_or_killed? (it hung, or was killed "
                        "there)|}{killed? (killed or crashed there)|}"},
    {Say::never_made_other_end, "{who} never called the {function} for which {called}[: {then}]"},
    {Say::ends_of_messages,
     "{who} called {sent?ncclSend to|ncclRecv from} {other} {calls:,} {calls?time|times}, which "
     "called {sent?ncclRecv|ncclSend} {theirs:,} {theirs?time|times}: that is one too few there, "
     "or one too many here"},
    {Say::message_of, "message {seq} {sent?to|from} {other} of communicator {communicator}"},
    {Say::never_came,
     "{who} {until?had not come by |never came to}[{until} to] collective {seq}[ ({function})] of "
     "communicator {communicator}, which {came} called: {then}"},
    {Say::not_come,
     "{who} {until?had not come by |never came to}[{until} to] {call}, which {came} {came:is} "
     "inside[ since {since}]: {then}"},
    {Say::some_not_come,
     "{missing} of {who} never came to {call}, which {came} {came:is} inside[ since {since}]; "
     "which of them have to come is not known"},
    {Say::got_back,
     "{who} came to {call} and got {error} back, and {came} {came:is} inside it[ since {since}]"},
    {Say::not_all_came,
     "{missing:,} of its {ranks:,} ranks {missing?has|have} not come to it, and the traces do not "
     "tell which"},
    {Say::only_such_call,
     "no rank has called another {function} of {size} there: it may be a call too many of {who}"},
    {Say::runs_unknown, "whether it runs is not known"},
    {Say::closed_before, CLOSED "before it" WHY_CLOSED},
    {Say::stood_still,
     "{who} stood still before it[, for {quiet}]{reads?, behind a copy from its device: its host "
     "may wait for that, and the device for those of others|}"},
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
    {Say::waits_for, "{called}, waiting for {who}"},
    {Say::last_call,
     "the last call of {who} that returned: {call}; {lives?it made none for|its trace ends} "
     "{none_for}{lives?| later}"},
    {Say::last_call_unknown, "the lines of {who} do not tell which of its calls returned last"},
    {Say::within_ranges,
     "{who} {who:is} within NVTX range{ranges?|s} {path:/}{ranges?| (innermost "
     "last)}{other_thread? on another thread|}[ ({thread})]" SINCE},
    {Say::range_named, "\"{name}\"[ ({domain})]"},
    // Evidence, and what to do.
    {Say::returned_to, "{who} called it too, and it returned"},
    {Say::nobody_missing,
     "every rank came: nobody is missing{hang?, so the devices or the network hold it up|}"},
    {Say::lines_tell_how_long, "event lines would tell how long it stood there"},
    {Say::in_no_call,
     "{who} was in no call that tprof records: look at its own code (an exception, data loading) "
     "and at waits for the device (cudaStreamSynchronize is not recorded)"},
    {Say::did_not_close, "{who} did not close (killed or crashed); the counts are exact"},
    {Say::end_unknown, "what {who} did at the end is not known"},
    {Say::unknown_after,
     "what {who} did after {who?|their snapshots (the oldest is of }{until}{who?|)} is not known"},
    {Say::nothing_known, "nothing is known of {who}"},
    {Say::may_wait_for_device,
     "a host waits in a copy for its device, and that may wait for the devices of others"},
    {Say::process_stopped,
     "{who} {who:is} stopped, {traced?held by a debugger (state t|by a signal (state T} in /proc), "
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
     "{who} called {function}, collective {seq} of communicator {communicator}: its device did not "
     "end it, and {others?that|those} of {others} did"},
    {Say::devices_stand,
     "{who} called {function}, {message?message|collective} {seq} of communicator {communicator}, "
     "and none of their devices ended it: {some?those of {idle} had not begun it, as others had|"
     "nobody is missing, so the devices or the network hold it up}"},
    {Say::look_at_rank,
     "look at {who}: the end of its output, its stack if it still runs (py-spy dump --native), its "
     "GPU (nvidia-smi, Xid errors in dmesg)"},
    {Say::dumps_tell,
     "{who} {who:is} known from dumps of PyTorch's Flight Recorder, written when a call timed out: "
     "what came later is not known, and messages are counted from the first that has not ended"},
    {Say::look_at_network, "look at the network and at NCCL's own log (NCCL_DEBUG=INFO)"},
    {Say::same_order,
     "calls that wait for each other must be made in the same order on all ranks; sends and "
     "receives of a pair belong into one ncclGroupStart and ncclGroupEnd (batch_isend_irecv)"},
    // Collectives of several communicators in orders that do not fit.
    {Say::group_order,
     "{who} called {first} before {then}, {others} the other way round: {deadlock?a deadlock, as a "
     "stream runs one after the other|NCCL needs the same order on all ranks}",
     "look for what decides in the program which of the two comes first, or whether one is made: "
     "there something depends on the rank; what waits for each other has to be called in one order "
     "on all ranks"},
    {Say::order_circle,
     "{who} called collectives or messages in orders that do not fit, in which each waits for the "
     "next: {deadlock?a deadlock, as a stream runs one after the other|NCCL needs the same order "
     "on all ranks}",
     "collectives of several communicators have to be called in one order on all ranks, and sends "
     "and receives that wait for each other belong into one ncclGroupStart and ncclGroupEnd "
     "(batch_isend_irecv)"},
    {Say::called_then, "{who}[ ({by})]: {first} at {at}, then {then} at {then_at}"},
    {Say::not_through,
     "their devices are not through with any of these, and are with those before"},
    {Say::no_call_since, "{who} made no call for {quiet}{ended? before their traces end|}"},
    // Who ended first.
    {Say::closed_first, FIRST CLOSED_AT STOOD LONGER},
    {Say::killed_first, FIRST "killed or crashed, last heard of at {at}" STOOD LONGER},
    {Say::first_unknown, "{closed} " CLOSED_AT ", about when {killed} {killed?was|were} killed or "
                         "crashed: who was first, the traces do not tell"},
    {Say::killed_together,
     "{who} were killed or crashed[: {silent} fell silent first, {longer} before the others, which "
     "does not prove that it ended first]{known?|; who was first, the traces do not tell}",
     "the launcher's output tells which rank ended first, and how"},
    {Say::fell_silent,
     "{who} was last heard of at {at}, the others for {longer} more (at every call, and at least "
     "five times a second)"},
    // Words for what could not be seen.
    {Say::missed, "NCCL's NVTX ranges show calls that went past libtprof.so[ ({some})]: {calls}",
     "{dlsym?|set TPROF_DLSYM=1 for functions taken with dlsym (ctypes, cffi); }calls through "
     "RTLD_DEEPBIND, or of an NCCL that is linked in, are not counted"},
    {Say::missed_of, "{missed} of {name} (counted: {counted})"},
    {Say::misspelt_setting, "{name} is not a setting, so it does nothing",
     "{nearest?did you mean |the settings are in the README}[{nearest}?]"},
    {Say::bad_setting, "{name}={value} is not understood; in force is {fallback}",
     "expected {values}"},
    {Say::versions_differ, "the ranks have different versions of {what}: {values}",
     "give all ranks the same libraries"},
    {Say::settings_differ, "{what}: {values}",
     "give all ranks the same, unless they are meant to differ"},
    {Say::value_on, "{value|not set} on {who}"},
    {Say::no_nccl, "a job of {world_size} ranks has loaded NCCL, and no call of it was seen",
     "if it does use NCCL, that is linked in, or its functions are taken with dlsym (ctypes.CDLL)"},
    {Say::nothing_counted, "no NCCL call and no CUDA copy was counted",
     "tprof doctor, with these traces, says what may have gone past"},
    {Say::nvshmem,
     IN_PATHS "NVSHMEM moves data between GPUs from inside kernels, which no call shows",
     "treat it as not counted"},
    {Say::cufile, IN_PATHS "cuFile (GPUDirect Storage) moves data between files and GPUs",
     "treat reads and writes of files as not counted"},
    {Say::mscclpp, IN_PATHS "MSCCL++ brings collectives of its own", "treat it as not counted"},
    {Say::ucx, IN_PATHS "UCX moves data between GPUs and nodes", "treat it as not counted"},
    {Say::mpi, IN_PATHS "a CUDA-aware MPI moves data between GPUs and nodes",
     "count its calls with an MPI profiler, such as mpiP"},
    {Say::gdrcopy, IN_PATHS "GDRCopy copies to and from GPUs by plain stores",
     "treat it as not counted"},
    {Say::vllm,
     IN_PATHS "vLLM may reduce small tensors by kernels of its own (custom all-reduce, symmetric "
              "memory), which no call shows",
     "start it with --disable-custom-all-reduce, and NCCL does this"},
    {Say::flashinfer,
     IN_PATHS "FlashInfer reduces and exchanges by kernels that write to other GPUs, which no call "
              "shows",
     "treat what it reduces as not counted"},
    {Say::deep_ep,
     IN_PATHS "DeepEP moves the tokens of experts between GPUs from inside its kernels, which no "
              "call shows",
     "treat dispatch and combine as not counted"},
    {Say::uccl, IN_PATHS "UCCL moves messages and the tokens of experts between GPUs and nodes",
     "treat it as not counted"},
    {Say::ncclx,
     IN_PATHS "NCCLX of torchcomms has NCCL linked in under other names, so tprof does not see its "
              "collectives",
     "use a device profiler for it"},
    {Say::dali, IN_PATHS "DALI copies through the driver (cuMemcpy)", "[set {set}]"},
    {Say::jax,
     IN_PATHS "XLA takes NCCL's and CUDA's functions with dlsym, so tprof does not see its calls",
     "[set {set}]"},
    {Say::tensorflow,
     IN_PATHS "TensorFlow has NCCL linked in, so tprof does not see its collectives",
     "use a device profiler for it"},
    {Say::cupy,
     IN_PATHS "CuPy has the CUDA runtime linked in (version 14), so tprof does not see its copies",
     "[set {set}]"},
    {Say::second_nccl,
     IN_PATHS "a second NCCL that no wrapped call reached: it is not used, or it is called past "
              "the dynamic linker",
     "[set {set}, or ]make everything use one NCCL, linked or in the global scope"},
    {Say::second_cudart,
     IN_PATHS "a second CUDA runtime that no wrapped call reached: it is not used, or it is called "
              "past the linker",
     "[set {set}, or ]make everything use one CUDA runtime"},
    {Say::uncalled_cudart,
     IN_PATHS
     "none of its wrapped functions was called: if it copies anything, it does so past the linker",
     "[set {set}, or ]link with the shared CUDA runtime"},
    {Say::static_cudart,
     IN_PATHS
     "the CUDA driver is loaded, but no libcudart.so: copies, if there were any, went through a "
     "CUDA runtime that is linked in, or through the driver, and are not counted",
     "[set {set}, or ]link with nvcc -cudart shared"},
    {Say::dlsym,
     IN_PATHS "its functions were taken with dlsym (ctypes, cffi, CuPy, JAX): calls through such "
              "pointers are not counted",
     "[set {set}]"},
    {Say::comm_unknown,
     IN_PATHS "communicators were made unseen (past the dynamic linker, or too early): calls on "
              "them are counted, but not compared with other ranks'",
     "[set {set}, or ]make them with wrapped functions: tprof coverage lists these"},
    {Say::comm_shared, IN_PATHS
     "more communicators were made than there is room for (65,280 in the life of a process): calls "
     "on the others are counted without a communicator, as of one rank, and not compared"},
    {Say::threads,
     IN_PATHS "more than 1,024 threads made calls at a time, or there was no memory for one: calls "
              "of the others are not counted"},
    {Say::streams,
     IN_PATHS "more than 128 streams were used: lines of calls on the others name no stream"},
    {Say::ledger_full,
     IN_PATHS "a thread made more kinds of calls than its ledger has rows: {calls:,} calls are "
              "counted as `other` of their bucket and data type, without function, size and "
              "communicator; the sums of buckets are exact"},
    {Say::uncounted,
     IN_PATHS "calls of this were made, and the bytes that they move are not counted (CUDA arrays, "
              "batches of boxes, prefetches, copies with attributes, peers or fabric, NCCL EP "
              "before 0.1)"},
    {Say::unknown_cudart,
     IN_PATHS "its batches of copies are not counted: which CUDA version it is, is unknown",
     "use NVIDIA's libcudart.so.12 or .13"},
    {Say::graph_unknown,
     IN_PATHS "CUDA graphs were launched that hold child graphs, copies that no captured call made "
              "or nodes of unknown kinds, or may hold kernels of NCCL whose capture was not seen "
              "(clones), or too many different ones: those are not counted[ ({calls:,} launches of "
              "which nothing is)]",
     "launch the graphs that the calls were captured into"},
    {Say::graph_edited,
     IN_PATHS "nodes of CUDA graphs were changed, enabled or removed by hand: if they are copies "
              "or kernels of NCCL, their counts are as before the change",
     "change the graph and update the executable from it (cudaGraphExecUpdate), or capture anew"},
    {Say::graph_conditional,
     IN_PATHS "CUDA graphs with conditional nodes were launched: how often copies and collectives "
              "in them ran only the device knows, and they are not counted",
     "treat the counts as lower bounds, or launch what is in them as graphs of their own"},
    {Say::graph_device_launch,
     IN_PATHS "CUDA graphs that kernels can launch: those launches are not counted, the host's are",
     "treat the counts as lower bounds, or launch them from the host"},
    {Say::nested,
     IN_PATHS
     "its calls within another call of the thread (signal handlers, plugins) are not counted",
     "treat them as not counted, or make them outside signal handlers"},
    {Say::nsys,
     IN_PATHS "Nsight Systems is in the process: counts stay exact, times include its work"},
    {Say::ncu, IN_PATHS "Nsight Compute is in the process: it replays kernels, times mean nothing",
     "trace without it"},
    {Say::sanitizer, IN_PATHS "compute-sanitizer is in the process: times mean nothing",
     "trace without it"},
    {Say::cuda_injection,
     IN_PATHS "CUDA_INJECTION64_PATH brings a tool into the process: times include its work"},
    {Say::nccl_profiler,
     IN_PATHS "NCCL_PROFILER_PLUGIN brings a tool into NCCL: times include its work"},
    {Say::interposer,
     IN_PATHS "its functions come before those of libtprof.so: only what it passes on is counted",
     "put libtprof.so first in LD_PRELOAD, or set TPROF_DLSYM=1 if it takes the real functions "
     "with dlopen and dlsym; link programs with the shared NCCL and CUDA runtime"},
    // Words for ranks of a communicator that did different things.
    {Say::mismatch, "communicator {communicator} ({nranks} ranks): {what}[; {where}]",
     "look for what decides in the program whether, in which order and with what this call is "
     "made: there something depends on the rank{lines_missing?; for the operation, write the lines "
     "of these ranks (TPROF_RANKS, TPROF_QUOTA)|}"},
    {Say::part_at, "they part at collective {from}"},
    {Say::part_within, "they part at one of the collectives {from} to {to}"},
    {Say::difference, "{first?first|a} difference: collective {seq}"},
    {Say::issued,
     "{who} issued {collectives:,} {one?collective|collectives} as {others|the others} did, but "
     "not the same ones"},
    {Say::issued_others,
     "{who} issued {collectives:,}[ to {most:,}] {one?collective|collectives}, {others|the others} "
     "{theirs:,}"},
    {Say::did_not_call, "as collective {seq}, {who} did not call what {others} called"},
    {Say::counted_calls,
     "{who}: {calls:,} {function} of {dtype} {size}[ with counts that add up to {count:,}], "
     "{others|the others} {theirs:,}"},
    {Say::same_calls,
     "the same calls of the same sizes on both sides: what differs is the root, the reduction or "
     "the order"},
    {Say::differ_too, "they differ among themselves too, in {ways:,} ways: shown is {who}"},
    {Say::no_majority, "no side is the majority: either may be the wrong one"},
    {Say::operation_unknown, "which operation it is, lines do not tell: {why:;}"},
    {Say::earlier_too, "an earlier one may differ: {why:;}"},
    {Say::no_lines, "{who:rank} has no lines of it"},
    {Say::lines_exist, "lines of {who:rank} exist for its collectives {first} to {last}"},
    {Say::one_made, "{who:rank}, {seq}: {call}[, from {line}]"},
    {Say::both_made, "both sides, {seq}: {call} on {who:rank}"},
    {Say::made_no_more, "{who:rank}, {seq}: no more"},
    {Say::left_out, "{who:rank} goes on with what {other:rank} does next: it left this one out"},
    {Say::extra, "{who:rank} then does what {other:rank} does here: this one is extra"},
    {Say::swapped, "{who:rank} does these two the other way round"},
    // Words for what makes a job slower than it could be.
    {Say::slow_gpu, SLOW_ONES "{one?computes|compute} longer than the others" WITHOUT_THAT,
     "compare clocks, power and temperature with those of the others (nvidia-smi -q -d "
     "PERFORMANCE,CLOCK); if these are alike, there is more to compute"},
    {Say::exchanges_more,
     "in all-to-alls {one?it sends and receives|they send and receive} {times} times as many bytes "
     "as the others: look at how tokens or rows are shared out among the ranks"},
    {Say::copies_in_times,
     "{one?it copies|they copy} {times} times as many bytes to the device in a step as the others: "
     "look at how batches are shared out among the ranks"},
    {Say::idle_at_end,
     "{who?{who} stands|{one?it stands|they stand}} idle before a step begins, behind the last "
     "kernel of the step before: there programs load data, write checkpoints and log"},
    {Say::idle_before_copies,
     "{once?in that step|}[in step {at}]{some?in most of these steps|}{all?in most steps|} most of "
     "that time lies before copies to the device: there programs load a batch, or make tensors on "
     "the host"},
    {Say::idle_within,
     "{once?in that step|}[in step {at}]{some?in most of these steps|}{all?in most steps|} most of "
     "that time lies between the {behind|copies to the device} and the {before|end of the step}"},
    {Say::look_there,
     "look at what the program does there: Python, {ahead?a loader that reads one batch ahead "
     "(accelerate), |}values that it reads (.item()), garbage collection; and at the host: other "
     "programs on its cores, their clock, swapping"},
    {Say::copies_out_each,
     "{one?it copies|they copy} {bytes} more from the device than the others, on the average of "
     "steps, as for a checkpoint"},
    {Say::sends_more,
     "in these steps {who} {one?moves|move} {bytes} more by NCCL: tprof summary --by step tells "
     "with which calls"},
    {Say::copies_in_more,
     "in these steps {who} {one?copies|copy} {bytes} more to the device, as for an evaluation or a "
     "longer batch"},
    {Say::copies_out_more,
     "in these steps {who} {one?copies|copy} {bytes} more from the device, as for a checkpoint"},
    {Say::more_calls,
     "in {all?all|{n:,}} of these steps most ranks make [{reads:,} more {reads?copy|copies} from "
     "the device][{and? and |}][{calls:,} more {calls?call|calls} of NCCL] than usual"},
    {Say::more_calls_before,
     "{all?all|{n:,}} of these steps come right behind one in which most ranks make [{reads:,} "
     "more {reads?copy|copies} from the device][{and? and |}][{calls:,} more {calls?call|calls} of "
     "NCCL] than usual"},
    {Say::read_rarely,
     "a host that reads a value (.item(), print, .cpu()) waits for its device and is no longer "
     "ahead of it: do so rarely, or copy with non_blocking=True and read a step later"},
    {Say::call_rarely,
     "make these calls rarely, or on fewer bytes: tprof summary --by step tells which they are"},
    {Say::save_aside,
     "if they write a checkpoint there, do so rarely, or in the background "
     "(torch.distributed.checkpoint.async_save)"},
    {Say::slow_input,
     "the {one?device|devices} of " SLOW_ONES
     "{one?begins|begin} to work later in a step than the others'" WITHOUT_THAT,
     BEFORE_WORK},
    {Say::slow_cpu,
     "the {one?device|devices} of " SLOW_ONES
     "{one?stands|stand} idle longer than the others'" WITHOUT_THAT,
     "look at the host: the program's own Python code, loading of data, other programs on its "
     "cores, their clock, swapping, Python's garbage collector"},
    {Say::slow_copies,
     "the copies of " SLOW_ONES "take longer than the others' of the same size" WITHOUT_THAT,
     "look at the link between host and device: generation and width of PCIe (nvidia-smi -q -d "
     "PCIE), the NUMA node of the process, others that use the same switch, pinned memory"},
    {Say::slow_link,
     "{bucket} of {size} takes {takes} on the [{role} ]communicator of {who}, and {others} on the "
     "{alike:,} other{alike?|s} that {alike?moves|move} as much: as quick, it would be exposed for "
     "up to {share} of a step less",
     "look at the network between these ranks: link rate, errors, the NIC that NCCL chose "
     "(NCCL_DEBUG=INFO)"},
    {Say::slow_link_at_times,
     "transfers on the {several?communicators|communicator} of {who} take longer than "
     "usual" WITHOUT_THAT,
     "look at the network between these ranks in that time: errors, link rate, other jobs on the "
     "same links"},
    {Say::below_peak,
     "{bucket} of {size} on the [{role} ]communicator of {on} transfers {reaches} GB/s "
     "{between?between|within} hosts, {of_peak} of the peak: at the peak a step would be {share} "
     "shorter",
     "look at the path that NCCL chose (NCCL_DEBUG=INFO), and measure the same size and ranks with "
     "nccl-tests"},
    {Say::uneven_ranks,
     "[{ranks:,} ranks ][{who}, all of host {host}, ]{stage?{who}, one stage of the pipeline, "
     "|}take "
     "turns at holding up the others, by {hosts?what their hosts do|what they compute}: with even "
     "work a step would be {share} shorter",
     "{hosts?{loads?" BEFORE_WORK "|hosts with fewer cores than their ranks need do this, and "
     "Python's garbage collector}|batches "
     "of unlike size do this: sort or pack sequences by length}"},
    {Say::late_prefetch,
     "{late} of the all-gathers begin only when the computation before them has ended: begun "
     "earlier, they would make a step {share} shorter",
     "prefetch them: backward_prefetch and forward_prefetch in FSDP1, "
     "set_modules_to_forward_prefetch and its twin for backward in FSDP2"},
    {Say::gathers_behind,
     "most steps make {calls:,} {calls?all-gather|all-gathers} of {bytes}{calls?| on average} "
     "behind their backward pass, where FSDP needs none: without {calls?it|them} a step would be "
     "{share} shorter",
     "look for full_tensor(), summon_full_params(), a full state_dict or all_gather in the loop: "
     "do it every N steps, or compute on the shards and reduce the result"},
    {Say::late_reductions,
     "reductions begin only when most of a step is computed: if they are of gradients, begun in "
     "the backward pass they would make it {share} shorter",
     "DDP begins early if its buckets are smaller than all gradients (bucket_cap_mb), FSDP if "
     "layers are wrapped one by one, DeepSpeed with overlap_comm"},
    {Say::exposed_gathers,
     "all-gathers of {bytes} on average are exposed: without them a step would be {share} shorter",
     "if only a metric or a log needs them, make them every N steps, or reduce on each rank first; "
     "TPROF_CALLSITE=python tells the lines that make them"},
    {Say::blocking_h2d,
     "{calls:,} {calls?copy|copies} to the device of {bytes} on average {calls?makes|make} the "
     "program wait in each step: without that it would be {share} shorter",
     "copy from pinned memory with non_blocking=True, or make the tensors on the device"},
    {Say::blocking_d2h,
     "{calls:,} {calls?copy|copies} from the device of {bytes} on average {calls?makes|make} the "
     "program wait in the middle of each step: without {calls?it|them} it would be {share} shorter",
     ".item(), print and .cpu() of a tensor do so: do them once a step, or rarely"},
    {Say::idle_devices,
     "the {one?device|devices}{all?{one?| of all ranks}| of {who}} {one?stands|stand} idle, as "
     "{one?its host does|their hosts do} not bring {one?it|them} work in time: without that a step "
     "would be {share} shorter",
     "{loads?there is none at the beginning of a step: look at the loading of data (more workers, "
     "prefetching)|look for {reads?.item(), print and .cpu() in the loop, |}slow Python, an "
     "optimizer on the CPU; larger batches and CUDA graphs keep a device busy with fewer "
     "launches}"},
    {Say::gathered_again,
     "weights are gathered again in the backward pass: without that a step would be {share} "
     "shorter",
     "where there is memory for it, SHARD_GRAD_OP in FSDP1, reshard_after_forward=False in FSDP2 "
     "and ZeRO-2 in DeepSpeed save them, and what their hosts and copies take beside them"},
    {Say::reduced_again,
     "gradients are reduced in each of the {passes} backward passes of a step, where one is "
     "enough: without the others it would be {share} shorter",
     "no_sync(), or set_requires_gradient_sync(False) in FSDP2, until the last micro-batch; it "
     "takes memory for the gradients"},
    {Say::wide_dtype,
     "{which} {one?is|are} in float32: in bfloat16 a step would be {share} shorter",
     "{sharded?MixedPrecision(param_dtype, reduce_dtype) in FSDP1, MixedPrecisionPolicy in "
     "FSDP2|bf16_compress_hook in DDP, or tensors in bfloat16 where the program sends its own}"},
    {Say::long_steps,
     "{steps?step {which} takes far longer than the other {others:,}|{steps:,} of {of_steps:,} "
     "steps[, {which},] take far longer than the others}{host? on the hosts|}, {steps?|up to "
     "}{longest}[ in step {at}][ on {on}][, held up by {held_up_by:and},] where the usual step "
     "takes {usual}[: without that a step would be {share} shorter on average]",
     "{host?the hosts may wait there for their devices, which they ran ahead of; "
     "TPROF_TIMING=events tells how long the devices take|}{by_nobody?look at what the program "
     "does in these steps and just before them: tprof merge draws them|}[look at the host of "
     "{host_of} there: its own code, loading of data, a checkpoint, Python's garbage collector]"},
    {Say::holds_up, "{who}[ in {steps?step|steps} {which}][ in {n:,} of them]"},
    {Say::periodic_steps,
     "every {period} step, first step {first}, takes up to {longest}[, held up by "
     "{held_up_by:and},] where the usual step takes {usual}: without that a step would be {share} "
     "shorter on average",
     "usually that is a checkpoint, an evaluation or Python's garbage collector"},
    {Say::jumping_steps,
     "from step {step} on a step takes {after}, and {before} before that: without that a step "
     "would be {share} shorter on average",
     "look at what changed there: the size of batches, clocks and temperature of the GPUs, other "
     "jobs on the network"},
    {Say::drifting_steps,
     "steps get longer and longer: by {grown} ({share}) over {of_steps:,} steps"},
    // Words for what keeps a program from being traced.
    {Say::does_not_load, "the library does not load into /bin/true: {said}[exit code {code}]",
     "use a library that was built for this system"},
    {Say::limit,
     "ulimit -f: no file may grow to {quota?|64 KiB, so nothing is traced}[the {quota} of "
     "TPROF_QUOTA, so lines will be missing]",
     "raise it: ulimit -f unlimited"},
    {Say::disabled, "TPROF_DISABLE={value}: nothing is traced", "unset TPROF_DISABLE"},
    {Say::output_full, "cannot {step} in {folder}: {reason}",
     "free space or quota there, or choose another folder with {variable}"},
    {Say::output_unusable, "cannot {step} in {folder}: {reason}",
     "choose another folder with {variable}"},
    {Say::create_file, "create a file"},
    {Say::allocate, "allocate 2 MiB"},
    {Say::map_file, "map a file"},
    {Say::ring_dir_unusable,
     "no ring file can be in {ring_dir} (TPROF_RING_DIR): it will be in {rings|memory}",
     RING_FOLDER},
    {Say::ring_nowhere,
     "ring files can't lie in {folder} ({file_system}), and neither in /dev/shm, TMPDIR or /tmp: "
     "they would be memory, and a kill loses up to 10 s",
     RING_FOLDER},
    {Say::output_small, "{folder} has {room} left, and each process may write {quota} of lines",
     "choose another folder with TPROF_OUTPUT_DIR, or lower TPROF_QUOTA"},
    {Say::not_found, "{object} wants {library}, which is not found",
     "add its folder to LD_LIBRARY_PATH"},
    {Say::program_not_found, "{program}: no such program, but {script} wants it",
     "install it, or correct the script's first line"},
    {Say::loader_not_found, "{program} wants the dynamic loader {loader}, which is not there",
     "install it, or run where it is there"},
    {Say::container,
     "{launcher} starts the program in a container, which can't be looked into from here",
     "mount the library and the output folder into it, pass LD_PRELOAD and TPROF_OUTPUT_DIR on, "
     "and run tprof doctor inside; its glibc has to be {glibc} or newer"},
    {Say::elsewhere, "{launcher} starts programs on other hosts; what was looked at is here",
     "{launcher} tprof doctor tells of each of them"},
    {Say::other_machine,
     "{program} is for {machine}{is_64_bit?| (32 bits)}, and the library for {library_machine}",
     "use a libtprof.so that was built for it"},
    {Say::secure_execution,
     "{program} {by_mode?is setuid or setgid|has file capabilities}, so its dynamic loader ignores "
     "LD_PRELOAD",
     "run a copy without that, or start the program that it runs without it"},
    {Say::static_program,
     "{program} is linked statically: there is no dynamic loader to preload anything",
     "link it dynamically"},
    {Say::musl, OTHER_LOADER, "build it for a system with glibc"},
    {Say::unknown_loader, OTHER_LOADER, "build it for a system with glibc"},
    {Say::old_glibc, "{complaint}",
     "the library needs glibc {glibc} or newer: run on a newer system"},
    {Say::loader, "{complaint}"},
    {Say::static_nccl, "{path} has NCCL linked in: its collectives are not counted",
     "link it with libnccl.so"},
    {Say::cudart_linked_in,
     "{path} has the CUDA runtime linked in (nvcc's default): its copies are not counted",
     "set TPROF_DRIVER=1, or link it with nvcc -cudart shared"},
    {Say::exports_nccl,
     "{path} exports NCCL's functions itself, before the library's: only what it passes on to "
     "these is counted",
     "link it with libnccl.so"},
    {Say::pynccl,
     "vLLM is installed: where it takes NCCL's functions with ctypes (pynccl), collectives of its "
     "own are not counted, those of PyTorch are",
     "set TPROF_DLSYM=1"},
    {Say::torch_without_cuda,
     "{folder} is a PyTorch without CUDA: it calls neither NCCL nor the CUDA runtime",
     "install PyTorch for CUDA"},
    {Say::nothing_served, "no NCCL and no CUDA runtime is among the libraries that it is linked to",
     "if it opens them when it runs, all is well: tprof doctor DIR tells afterwards{dlsym?|; if it "
     "takes their functions with dlsym (ctypes, cffi), set TPROF_DLSYM=1}"},
};

}  // namespace

std::span<const Words> all_words() {
  return kWords;
}

}  // namespace tprof::report
