// Every sentence of a finding, with what to do about it.
#include "report/words.h"

namespace tprof::report {
namespace {

using check::Say;

#define ALIKE_ENDS                                                                              \
  "every ncclSend needs an ncclRecv of the same count and type on the other rank, in the same " \
  "order"

constexpr std::string_view kMoreRoom =
    "{write_error?standard error of the process says why: TPROF_OUTPUT_DIR is full, or the program "
    "closed our file|}{ring?raise TPROF_RING (NVTX ranges leave half of it to calls)|}{quota?raise "
    "TPROF_QUOTA (NVTX ranges have a quarter of it on top), or write lines of fewer ranks with "
    "TPROF_RANKS|}";

#define SINCE "[ since {since}][, {before_end} before the end of {who?its trace|their traces}]"
#define FIRST "{who} ended first{all_known?| of those whose end is known}: "
#define STOOD "[, {stood} after the last call of any rank]"
#define LONGER "[; the others lived for {longer} more]"
#define CLOSED "{status?exited with status|closed in order}[ {status}] "
#define WHY_CLOSED "{status?| (an exception, or an early exit?)}"
#define CLOSED_AT CLOSED "at {at}" WHY_CLOSED

// A sentence about a library or tool begins with the files found and the processes that have them.
#define IN_PATHS "{paths}[ ({some})]: "

#define SLOW_ONES "{who}[, all of host {host}]{stage?, one stage of the pipeline|}{named?,|} "
#define WITHOUT_THAT                                                                            \
  "[ in {in_steps} of {of_steps} steps][, {which}][, every {period}]: [leaving {after} aside, " \
  "]without that a step would be [{share} shorter][ ({least} to {most})]"
#define BEFORE_WORK                                                                       \
  "look at what the program does before the first kernel of a step: usually it loads or " \
  "prepares data"
#define RING_FOLDER "set TPROF_RING_DIR to a writable folder on tmpfs, ext4 or XFS"
#define OTHER_LOADER "{program} has a dynamic loader that is not glibc's: {loader}"

constexpr Words kWords[] = {
    // Words for the processes of a job and their ends.
    {Say::more_of_kind, "and {more:,} more findings of kind {kind}[: {ranks}]"},
    {Say::more, "and {more} more"},
    {Say::then, "then {what}"},
    {Say::missing_rank,
     "{missing} of {world_size} ranks {missing?has|have} no trace: {ranks:list}[; the files of "
     "{left} can't be read]",
     "{all_left?see the findings about these files|if they ran on other hosts, bring their rank "
     "files into one folder}"},
    {Say::missing_member,
     "communicator {communicator} has {nranks} ranks, of which {seen} have a trace here ({who})",
     "if the others ran on other hosts, bring their rank files into one folder; if they ran here, "
     "tprof could not see their calls: see tprof doctor"},
    {Say::duplicate_rank, "2 processes have rank {rank} of one communicator: {file} and {other}",
     "one of them is a copy, or of another run: leave it out"},
    {Say::rank_groups,
     "communicators join {groups:,} groups of processes, each with its own ranks, into one job: "
     "{list}; a rank number stands for all processes that have it",
     "if each rank should exist once, check the RANK variable of the launcher"},
    {Say::rank_group, "{who} on {host} ({command})"},
    {Say::world_sizes_differ, "ranks have different world sizes: {sizes}; {taken} is used here",
     "check the WORLD_SIZE variable of the launcher; TPROF_RUN_ID keeps two jobs apart"},
    {Say::other_run, "{beside}", "--run NAME and --attempt N show another"},
    {Say::assumed_job,
     "nothing but the folder connects these processes: no run id, no shared communicator",
     "set TPROF_RUN_ID, or start the job with tprof run"},
    {Say::skipped, "{reason}"},
    {Say::unreadable, "{reason}"},
    {Say::dumped_while_running,
     "the job ran when the dumps of {others} were written, so they don't tell where these stand: "
     "the device of {who} has ended {function}, collective {seq} of communicator {communicator}, "
     "and they had not called it"},
    {Say::running,
     "{who} {who:is} still running: the counts are as of now[; no rank has made a call for "
     "{quiet}][, and some ranks are behind: {behind} made {made:,} {made?collective|collectives} "
     "of {most:,} on communicator {communicator}][, and every rank reached the last collective, "
     "{last}: the program does something else (a checkpoint, an evaluation), or the devices or the "
     "network hold it up][; it counts as a hang after {stuck_after} without a call (--stuck-after "
     "of tprof check)]",
     "{last?if it hangs, look at the stack of a rank and at NCCL's own log (NCCL_DEBUG=INFO): "
     "py-spy dump --native --pid |}[{pid} on {host}]"},
    {Say::snapshot,
     "{who} did not close, and {forced?there was no ring file|no ring file is visible from here}: "
     "known by snapshot until {until} or later; {forced?what came after it is unknown|whether the "
     "program still runs is unknown}",
     "{ask?run tprof recover on its host, or with --force|}"},
    {Say::not_closed,
     "{who} {idle?ended without closing: killed by a signal, or ended in a way that tprof does not "
     "see; no NCCL call was open, and the counts are exact|did not close (killed or crashed): the "
     "counts are exact, recovered from the ring file}[; no rank had made a call for {quiet} by "
     "then][; every rank reached the last collective, {last}]",
     "{ask?the launcher's output tells how each rank ended: its exit code, or the signal|}[; look "
     "at the output of the ranks from {since} on]"},
    {Say::exited, "{who} exited with status {status}",
     "{who?its|their} own output tells why: Python prints an exception there"},
    {Say::partial,
     "{who} did not close, and not all counts fitted into the ring file (disk full, less than 1 "
     "GiB left in /dev/shm, or a file size limit): the counts are lower bounds",
     "free space where the ring file was, or raise ulimit -f"},
    {Say::lost,
     "{who} {short?left a truncated compressed file: its end is unknown|did not close, and there "
     "is no ring file}[: the counts are exact until {until} at least][; {unknown:,} "
     "{unknown?process has|processes have} no known counts: merge and export show what is in "
     "{unknown?its file|their files}]",
     "{short?copy the file again, or compress it again where it was written|}"},
    // Calls of ranks, and how long others waited.
    {Say::late,
     "{who} came last to {last:,} of {collectives:,} collectives, in total {behind} after the last "
     "but one{across_hosts?|, compared with the ranks of its host}",
     "look at what it did before {latest_at}; tprof summary --by rank shows all ranks"},
    {Say::latest_arrival,
     "the worst case: {late} late to {function}, collective {seq} of communicator {communicator}"},
    {Say::arrivals_are,
     "these are the times when {on_device?the devices reached the collectives|the hosts called "
     "them: what the devices did then is unknown}"},
    {Say::unmatched_p2p,
     "communicator {communicator} ({nranks} ranks): {from} called ncclSend to {to} {sends:,} "
     "{sends?time|times}, which called ncclRecv from it {receives:,} {receives?time|times}[: "
     "{function} {alone} has no counterpart][: message {differs} is the first whose ends differ]",
     ALIKE_ENDS},
    {Say::p2p_sizes,
     "communicator {communicator} ({nranks} ranks): the two ends of message {seq} from {from} to "
     "{to} differ: {sent} sent, {received} to be received[; {pairs:,} pairs of ranks have such a "
     "message][, each with {odd}]",
     ALIKE_ENDS},
    {Say::sizes_differ_too,
     "message {seq} from {from} to {to}: {sent} sent, {received} to be received"},
    {Say::end_of_message,
     "{who} called {function} {seq} {send?to|from} {other} of {bytes} at {at}[, in a group of "
     "{group:,}][; the one before: {before}][; the next: {then}]"},
    {Say::totals_unmatched,
     "communicator {communicator} ({nranks} ranks): {sends:,} ncclSend and {receives:,} ncclRecv: "
     "some have no counterpart",
     "event lines of all ranks tell which ranks it is (TPROF_EVENTS, TPROF_RANKS)"},
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
    // Missing or contradictory parts of the files.
    {Say::overflow,
     "a total is larger than 64 bits can hold: a figure of {most:,} is a lower bound",
     "if that is impossible, a rank file is damaged: summary --per-rank shows which"},
    {Say::dropped,
     "{lines:,} counted {lines?event|events} of {who} {lines?has|have} no line in the timeline (by "
     "reason: {reasons})",
     kMoreRoom},
    {Say::dropped_ranges,
     "{lines:,} NVTX {lines?range|ranges} of {who} {lines?has|have} no line in the timeline (by "
     "reason: {reasons})",
     kMoreRoom},
    {Say::window_alone,
     "{who}: a window's file without its rank file: the counts are those of its lines",
     "the rank file has the counts of the whole run: {rank_file}"},
    {Say::missing_windows,
     "{who}: {missing:,} of {all:,} window files {missing?is|are} missing, so {missing?its|their} "
     "calls are in no timeline; the counts are those of the whole run"},
    {Say::seq_gap,
     "{who}: {collectives:,} {collectives?collective|collectives} of communicator {communicator} "
     "{collectives?has|have} {gap?no line|two lines}, although no line was dropped[; the first is "
     "{first}]",
     "was the file edited or spliced? The counts come from the ledger and are right"},
    {Say::ledger_decreased,
     "{who}: a later ledger has smaller counts than an earlier one, in {file}",
     "was the file edited or spliced? Its totals are not to be trusted"},
    {Say::fewer_collectives,
     "the ledger at byte {offset} says {now} {now?collective|collectives} of communicator {comm}, "
     "an earlier one {before}"},
    {Say::fewer_calls,
     "the ledger at byte {offset} says {now} {now?call|calls} of {function} ({dtype}, communicator "
     "{comm}, size class {bytes_class}, mode {mode}), an earlier one {before}"},
    {Say::ledger_lines, "{who}: ledger and event lines disagree although no line was dropped",
     "was the file edited or spliced? If not, this is a bug in tprof: please report it with this "
     "file (tprof anonymize takes names out)"},
    {Say::sums_differ,
     "{captured?captured |}{function} of {dtype}[ on communicator {communicator}]: the ledger has "
     "{ledger}; the lines {lines}"},
    {Say::sums,
     "{calls:,} {calls?call|calls}, {bytes:,} {bytes?byte|bytes}[, {unfinished} unfinished]"},
    {Say::clock_step,
     "the wall clock of {host} ({who}) was set {back?back|forward} by {by} between {from} and {to}",
     "times of this host before and after that can't be compared with other hosts' times: keep the "
     "clocks with chrony or ntpd, and set them before the job starts"},
    {Say::untimed,
     "{calls:,} {calls?call|calls} of {who} {calls?has|have} no device time ({why})[: {reason}]",
     "[{reason:advice}]"},
    {Say::exposure_unknown,
     "exposed time is unknown for {calls:,} of {of:,} {of?call|calls}, on {who} ({why})[: "
     "{reason}]",
     "[{reason:advice}]"},
    {Say::one_queue,
     "CUDA_DEVICE_MAX_CONNECTIONS=1[ on {who}]{events?: TPROF_TIMING=events is ignored, as timing "
     "events would keep communication from overlapping, so no call has a device time|}{gathers?; "
     "under that setting all-gathers and reduce-scatters of FSDP don't overlap with computation|}",
     "TPROF_TIMING=cupti gives device times in spite of it{gathers?; tensor and sequence "
     "parallelism need the setting, a job with FSDP alone should not set it|}"},
    // The reasons.
    {Say::untimed_no_context, "there was no CUDA context to ask, or the stream was capturing"},
    {Say::untimed_no_pair, "too many were in flight at a time",
     "time fewer of them: TPROF_TIMING=events:16 times one in 16"},
    {Say::untimed_mixed, "their group or batch has calls of other kinds or sizes"},
    {Say::untimed_in_progress, "NCCL was still enqueueing them when they returned"},
    {Say::untimed_sync, "the host waits for a synchronous copy, so its time is the host's"},
    {Say::untimed_unread,
     "the process ended, or the device failed, before their ends could be read"},
    {Say::untimed_device, "the driver refused to time them"},
    {Say::untimed_no_record, "CUPTI has no record of them", "try TPROF_TIMING=events"},
    {Say::untimed_impossible, "CUPTI reported impossible times", "try TPROF_TIMING=events"},
    {Say::untimed_tool, "the program wanted CUPTI for itself before they were read",
     "time without that tool, or with TPROF_TIMING=events"},
    {Say::untimed_order,
     "the previous call on their communicator was on another stream, and its end is unknown"},
    {Say::exposure_no_launch, "no kernel of the program was seen on their device"},
    {Say::exposure_host_late,
     "a stream ran dry at an unknown moment, since the host came late with its next launch",
     "TPROF_TIMING=cupti tells how long the device was busy with kernels"},
    {Say::exposure_no_pair, "all pairs of events were in use, so computation was not timed"},
    {Say::exposure_unread, "the end of concurrent computation was not read"},
    {Say::exposure_no_room, "there were too many streams or calls at a time"},
    {Say::exposure_no_clock, "the device's clock was unknown"},
    // Words for where ranks stand, and which ended first. A hang or a stop uses one of these.
    {Say::stand_inside, "{everybody?all ranks, |}{who} {who:is} inside {call}" SINCE
                        "{ended?, and did not return|}{hung_or_killed? (it hung, or was killed "
                        "there)|}{killed? (killed or crashed there)|}"},
    {Say::never_made_other_end, "{who} never called the {function} for which {called}[: {then}]"},
    {Say::ends_of_messages,
     "{who} called {sent?ncclSend to|ncclRecv from} {other} {calls:,} {calls?time|times}, which "
     "called {sent?ncclRecv|ncclSend} {theirs:,} {theirs?time|times}: one call is missing there, "
     "or one is too many here"},
    {Say::message_of, "message {seq} {sent?to|from} {other} of communicator {communicator}"},
    {Say::never_came,
     "{who} {until?had not come by |never came to}[{until} to] collective {seq}[ ({function})] of "
     "communicator {communicator}, which {came} called: {then}"},
    {Say::not_come,
     "{who} {until?had not come by |never came to}[{until} to] {call}, which {came} {came:is} "
     "inside[ since {since}]: {then}"},
    {Say::some_not_come,
     "{missing} of {who} never came to {call}, which {came} {came:is} inside[ since {since}]; it "
     "is unknown which of them have to come"},
    {Say::got_back,
     "{who} came to {call} and got {error} back, and {came} {came:is} inside it[ since {since}]"},
    {Say::not_all_came,
     "{missing:,} of its {ranks:,} ranks {missing?has|have} not come to it; the traces do not tell "
     "which"},
    {Say::only_such_call,
     "no rank has called another {function} of {size} there: {who} may have made a call too many"},
    {Say::runs_unknown, "it is unknown whether it runs"},
    {Say::closed_before, CLOSED "before it" WHY_CLOSED},
    {Say::stood_still,
     "{who} stood still before it[, for {quiet}]{reads?, after a copy from its device: its host "
     "may wait for its device, and that for other devices|}"},
    {Say::stopped_there, "its calls just end there, which proves no divergence"},
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
     "the last call of {who} that returned: {call}; {lives?it has made none for|its trace ends} "
     "{none_for}{lives?| later}"},
    {Say::last_call_unknown, "the lines of {who} do not tell which of its calls returned last"},
    {Say::within_ranges,
     "{who} {who:is} within NVTX range{ranges?|s} {path:/}{ranges?| (innermost "
     "last)}{other_thread? on another thread|}[ ({thread})]" SINCE},
    {Say::range_named, "\"{name}\"[ ({domain})]"},
    // Evidence and advice.
    {Say::returned_to, "{who} called it too, and it returned"},
    {Say::nobody_missing, "no rank is missing{hang?, so the devices or the network hold it up|}"},
    {Say::lines_tell_how_long, "event lines would tell how long it stood there"},
    {Say::in_no_call,
     "{who} was in no call that tprof records: look at its own code (an exception, data loading) "
     "and at waits for the device (cudaStreamSynchronize is not recorded)"},
    {Say::did_not_close, "{who} did not close (killed or crashed); the counts are exact"},
    {Say::end_unknown, "it is unknown what {who} did at the end"},
    {Say::unknown_after,
     "it is unknown what {who} did after {who?|their snapshots (the oldest is of }{until}{who?|)}"},
    {Say::nothing_known, "nothing is known about {who}"},
    {Say::may_wait_for_device,
     "a host in a copy waits for its device, which may wait for other devices"},
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
     "the {who?device|devices} of {who} did not end a collective that other devices ended: {who?it "
     "is|they are} lost or disconnected",
     "look at {who?this GPU and its host|these GPUs and their hosts}: Xid errors in dmesg, "
     "nvidia-smi -q, the links between them; the other ranks wait for {who?it|them}"},
    {Say::did_not_end,
     "{who} called {function}, collective {seq} of communicator {communicator}: its device did not "
     "end it, but {others?that|those} of {others} did"},
    {Say::devices_stand,
     "{who} called {function}, {message?message|collective} {seq} of communicator {communicator}, "
     "and none of their devices ended it: {some?those of {idle} had not even begun it, others "
     "had|no rank is missing, so the devices or the network hold it up}"},
    {Say::unended,
     "{who} called {function}, {message?message|collective} {seq} of communicator {communicator}, "
     "at {since}, and its device did not end it: the dumps do not tell what it waits for",
     "bring the dumps of all ranks, with more entries (TORCH_FR_BUFFER_SIZE)"},
    {Say::look_at_rank,
     "look at {who}: the end of its output, its stack if it still runs (py-spy dump --native), its "
     "GPU (nvidia-smi, Xid errors in dmesg)"},
    {Say::dumps_tell,
     "{who} {who:is} known from dumps of PyTorch's Flight Recorder, written when a call timed out: "
     "what came later is not known, and messages are counted from the first that has not ended"},
    {Say::look_at_network, "look at the network and at NCCL's own log (NCCL_DEBUG=INFO)"},
    {Say::same_order,
     "calls that wait for each other must be made in the same order on all ranks; put a pair's "
     "send and receive between one ncclGroupStart and ncclGroupEnd (batch_isend_irecv)"},
    // Collectives of several communicators in conflicting orders.
    {Say::group_order,
     "{who} called {first} before {then}, {others} the other way round: {deadlock?a deadlock, as a "
     "stream runs one after the other|NCCL needs the same order on all ranks}",
     "look for the code that decides which of the two comes first, or whether one is made: it "
     "depends on the rank; calls that wait for each other must have the same order on all ranks"},
    {Say::order_circle,
     "{who} called collectives or messages in orders in which each rank waits for the next: "
     "{deadlock?a deadlock, as a stream runs one after the other|NCCL needs the same order on all "
     "ranks}",
     "call collectives of several communicators in the same order on all ranks, and put sends and "
     "receives that wait for each other between one ncclGroupStart and ncclGroupEnd "
     "(batch_isend_irecv)"},
    {Say::called_then, "{who}[ ({by})]: {first} at {at}, then {then} at {then_at}"},
    {Say::not_through, "their devices have ended none of these, but all earlier ones"},
    {Say::no_call_since, "{who} made no call for {quiet}{ended? before their traces end|}"},
    // Who ended first.
    {Say::closed_first, FIRST CLOSED_AT STOOD LONGER},
    {Say::killed_first, FIRST "killed or crashed, last heard of at {at}" STOOD LONGER},
    {Say::first_unknown, "{closed} " CLOSED_AT ", about when {killed} {killed?was|were} killed or "
                         "crashed: the traces do not tell who was first"},
    {Say::killed_together,
     "{who} were killed or crashed[: {silent} fell silent first, {longer} before the others, which "
     "does not prove that it ended first]{known?|; the traces do not tell who was first}",
     "the launcher's output tells which rank ended first, and how"},
    {Say::fell_silent,
     "{who} was last heard of at {at}, the others for {longer} more (at every call, and at least "
     "five times a second)"},
    // Calls and data that could not be seen.
    {Say::missed, "NCCL's NVTX ranges show calls that bypassed libtprof.so[ ({some})]: {calls}",
     "{dlsym?|set TPROF_DLSYM=1 for functions taken with dlsym (ctypes, cffi); }calls through "
     "RTLD_DEEPBIND, or of a statically linked NCCL, are not counted"},
    {Say::missed_of, "{missed} of {name} (counted: {counted})"},
    {Say::misspelt_setting, "{name} is not a setting, so it does nothing",
     "{nearest?did you mean |the settings are in the README}[{nearest}?]"},
    {Say::bad_setting,
     "{name}={value} is not understood[: no bucket or function is named {unknown}][; {fallback} is "
     "used]",
     "expected {values}"},
    {Say::versions_differ, "the ranks have different versions of {what}: {values}",
     "give all ranks the same libraries"},
    {Say::settings_differ, "{what}: {values}",
     "give all ranks the same, unless they are meant to differ"},
    {Say::value_on, "{value|not set} on {who}"},
    {Say::no_nccl, "a job of {world_size} ranks has loaded NCCL, but no NCCL call was seen",
     "if it uses NCCL, that is statically linked, or its functions are taken with dlsym "
     "(ctypes.CDLL)"},
    {Say::nothing_counted, "no NCCL call and no CUDA copy was counted",
     "tprof doctor with these traces says what may have been missed"},
    {Say::nvshmem,
     IN_PATHS "NVSHMEM moves data between GPUs from inside kernels, which no call shows",
     "treat it as not counted"},
    {Say::cufile, IN_PATHS "cuFile (GPUDirect Storage) moves data between files and GPUs",
     "treat reads and writes of files as not counted"},
    {Say::mscclpp, IN_PATHS "MSCCL++ has its own collectives", "treat it as not counted"},
    {Say::ucx, IN_PATHS "UCX moves data between GPUs and nodes", "treat it as not counted"},
    {Say::mpi, IN_PATHS "a CUDA-aware MPI moves data between GPUs and nodes",
     "count its calls with an MPI profiler, such as mpiP"},
    {Say::gdrcopy, IN_PATHS "GDRCopy copies to and from GPUs by plain stores",
     "treat it as not counted"},
    {Say::vllm,
     IN_PATHS "vLLM may reduce small tensors with its own kernels (custom all-reduce, symmetric "
              "memory), which no call shows",
     "start it with --disable-custom-all-reduce, so that NCCL does this"},
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
     IN_PATHS
     "NCCLX of torchcomms contains NCCL under other names, so tprof does not see its collectives",
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
     IN_PATHS "a second NCCL that no wrapped call reached: it is unused, or its calls bypass the "
              "dynamic linker",
     "[set {set}, or ]make everything use one NCCL, linked or in the global scope"},
    {Say::second_cudart,
     IN_PATHS "a second CUDA runtime that no wrapped call reached: it is unused, or its calls "
              "bypass the linker",
     "[set {set}, or ]make everything use one CUDA runtime"},
    {Say::uncalled_cudart,
     IN_PATHS
     "none of its wrapped functions was called: if it copies anything, its calls bypass the linker",
     "[set {set}, or ]link with the shared CUDA runtime"},
    {Say::static_cudart,
     IN_PATHS "the CUDA driver is loaded, but no libcudart.so: copies, if any, went through a "
              "statically linked CUDA runtime or the driver, and are not counted",
     "[set {set}, or ]link with nvcc -cudart shared"},
    {Say::dlsym,
     IN_PATHS "its functions were taken with dlsym (ctypes, cffi, CuPy, JAX): calls through such "
              "pointers are not counted",
     "[set {set}]"},
    {Say::comm_unknown,
     IN_PATHS "communicators were created unseen (bypassing the dynamic linker, or too early): "
              "calls on them are counted, but not compared with other ranks'",
     "[set {set}, or ]create them with wrapped functions: tprof coverage lists these"},
    {Say::comm_shared,
     IN_PATHS "more than 65,280 communicators were created in the life of a process: calls on the "
              "others are counted without a communicator, as if of one rank, and not compared"},
    {Say::threads,
     IN_PATHS "more than 1,024 threads made calls at a time, or there was no memory for one: calls "
              "of the others are not counted"},
    {Say::streams,
     IN_PATHS "more than 128 streams were used: lines of calls on the others name no stream"},
    {Say::ledger_full,
     IN_PATHS "a thread made more kinds of calls than its ledger has rows: {calls:,} calls are "
              "counted as `other` of their bucket and data type, without function, size and "
              "communicator; the sums of buckets are exact"},
    {Say::uncounted, IN_PATHS
     "calls were made, but their bytes are not counted (CUDA arrays, batches of boxes or of "
     "several directions, prefetches, copies with attributes, peers or fabric, NCCL EP before "
     "0.1)"},
    {Say::unknown_cudart,
     IN_PATHS "its batches of copies are not counted, since its CUDA version is unknown",
     "use NVIDIA's libcudart.so.12 or .13"},
    {Say::graph_unknown,
     IN_PATHS "launched CUDA graphs have child graphs, copies that no captured call made, nodes of "
              "unknown kinds, or NCCL kernels whose capture was not seen (clones), or are too "
              "many: these are not counted[ (nothing at all of {calls:,} launches)]",
     "launch the graphs that the calls were captured into"},
    {Say::graph_edited,
     IN_PATHS "nodes of CUDA graphs were changed, enabled or removed by hand: the counts of their "
              "copies and NCCL kernels are as before the change",
     "change the graph and update the executable from it (cudaGraphExecUpdate), or capture anew"},
    {Say::graph_conditional,
     IN_PATHS "CUDA graphs with conditional nodes were launched: only the device knows how often "
              "their copies and collectives ran, so these are not counted",
     "treat the counts as lower bounds, or launch the nodes' contents as separate graphs"},
    {Say::graph_device_launch,
     IN_PATHS "CUDA graphs that kernels can launch: launches by kernels are not counted, those by "
              "the host are",
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
     IN_PATHS
     "its functions come before those of libtprof.so: only calls that it passes on are counted",
     "put libtprof.so first in LD_PRELOAD, or set TPROF_DLSYM=1 if it takes the real functions "
     "with dlopen and dlsym; link programs with the shared NCCL and CUDA runtime"},
    // Ranks of a communicator that did different things.
    {Say::mismatch, "communicator {communicator} ({nranks} ranks): {what}[; {where}]",
     "look for the code that decides whether, when and with what this call is made: it depends on "
     "the rank{lines_missing?; to see the operation, write the lines of these ranks (TPROF_RANKS, "
     "TPROF_QUOTA)|}"},
    {Say::part_at, "they diverge at collective {from}"},
    {Say::part_within, "they diverge at one of the collectives {from} to {to}"},
    {Say::difference, "{first?first|a} difference: collective {seq}"},
    {Say::issued,
     "{who} issued {collectives:,} {one?collective|collectives} as {others|the others} did, but "
     "not the same ones"},
    {Say::issued_others,
     "{who} issued {collectives:,}[ to {most:,}] {one?collective|collectives}, {others|the others} "
     "{theirs:,}"},
    {Say::did_not_call, "{who} and {others} called different things as collective {seq}"},
    {Say::counted_calls,
     "{who}: {calls:,} {function} of {dtype} {size}[ with counts that add up to {count:,}], "
     "{others|the others} {theirs:,}"},
    {Say::same_calls,
     "both sides made the same calls of the same sizes: the root, the reduction or the order "
     "differs"},
    {Say::differ_too, "they also differ among themselves, in {ways:,} ways: this shows {who}"},
    {Say::no_majority, "no side is the majority: either may be the wrong one"},
    {Say::operation_unknown, "the lines do not tell which operation it is: {why:;}"},
    {Say::earlier_too, "an earlier one may differ: {why:;}"},
    {Say::no_lines, "{who:rank} has no lines for it"},
    {Say::lines_exist, "{who:rank} has lines for collectives {first} to {last}"},
    {Say::one_made, "{who:rank}, {seq}: {call}[, from {line}]"},
    {Say::both_made, "both sides, {seq}: {call} on {who:rank}"},
    {Say::made_no_more, "{who:rank}, {seq}: no more calls"},
    {Say::left_out, "{who:rank} goes on with the next call of {other:rank}: it left this one out"},
    {Say::extra, "{who:rank} then makes this call of {other:rank}: its own one is extra"},
    {Say::swapped, "{who:rank} makes these two calls in the opposite order"},
    // Causes that make a job slower than it could be.
    {Say::slow_gpu, SLOW_ONES "{one?computes|compute} longer than the others" WITHOUT_THAT,
     "compare clocks, power and temperature with those of the others (nvidia-smi -q -d "
     "PERFORMANCE,CLOCK); if these are the same, it has more to compute"},
    {Say::exchanges_more,
     "in all-to-alls {one?it sends and receives|they send and receive} {times} times as many bytes "
     "as the others: look at how tokens or rows are distributed over the ranks"},
    {Say::copies_in_times,
     "{one?it copies|they copy} {times} times as many bytes to the device in a step as the others: "
     "look at how batches are distributed over the ranks"},
    {Say::idle_at_end,
     "{who?{who} stands|{one?it stands|they stand}} idle after the last kernel of a step, before "
     "the next step begins: there programs load data, write checkpoints and log"},
    {Say::idle_before_copies,
     "{once?in that step|}[in step {at}]{some?in most of these steps|}{all?in most steps|} most of "
     "that time is before copies to the device: there programs load a batch, or make tensors on "
     "the host"},
    {Say::idle_within,
     "{once?in that step|}[in step {at}]{some?in most of these steps|}{all?in most steps|} most of "
     "that time is between the {behind|copies to the device} and the {before|end of the step}"},
    {Say::look_there,
     "look at what the program does there: Python, {ahead?a loader that reads one batch ahead "
     "(accelerate), |}values that it reads (.item()), garbage collection; and at the host: other "
     "programs on its cores, their clock, swapping"},
    {Say::copies_out_each,
     "{one?it copies|they copy} {bytes} more from the device than the others, averaged over steps, "
     "as for a checkpoint"},
    {Say::sends_more,
     "in these steps {who} {one?moves|move} {bytes} more by NCCL: tprof summary --by step shows "
     "the calls"},
    {Say::copies_in_more,
     "in these steps {who} {one?copies|copy} {bytes} more to the device, as in an evaluation or "
     "with a longer batch"},
    {Say::copies_out_more,
     "in these steps {who} {one?copies|copy} {bytes} more from the device, as for a checkpoint"},
    {Say::more_calls,
     "in {all?all|{n:,}} of these steps most ranks make [{reads:,} more {reads?copy|copies} from "
     "the device][{and? and |}][{calls:,} more NCCL {calls?call|calls}] than usual"},
    {Say::more_calls_before,
     "{all?all|{n:,}} of these steps directly follow one in which most ranks make [{reads:,} more "
     "{reads?copy|copies} from the device][{and? and |}][{calls:,} more NCCL {calls?call|calls}] "
     "than usual"},
    {Say::read_rarely,
     "a host that reads a value (.item(), print, .cpu()) waits for its device and is no longer "
     "ahead of it: do this rarely, or copy with non_blocking=True and read a step later"},
    {Say::call_rarely,
     "make these calls rarely, or with fewer bytes: tprof summary --by step lists them"},
    {Say::save_aside,
     "if they write a checkpoint there, do it rarely, or in the background "
     "(torch.distributed.checkpoint.async_save)"},
    {Say::slow_input,
     "the {one?device|devices} of " SLOW_ONES
     "{one?starts|start} working later in a step than the others'" WITHOUT_THAT,
     BEFORE_WORK},
    {Say::slow_cpu,
     "the {one?device|devices} of " SLOW_ONES
     "{one?stands|stand} idle longer than the others'" WITHOUT_THAT,
     "look at the host: the program's own Python code, data loading, other programs on its cores, "
     "their clock, swapping, Python's garbage collector"},
    {Say::slow_copies,
     "the copies of " SLOW_ONES "take longer than the others' of the same size" WITHOUT_THAT,
     "look at the link between host and device: generation and width of PCIe (nvidia-smi -q -d "
     "PCIE), the NUMA node of the process, others that use the same switch, pinned memory"},
    {Say::on_comm, "on the [{role} ]communicator{several?s|} of {who}"},
    {Say::between_ranks, "between {who}"},
    {Say::of_ranks, "of {who}"},
    {Say::slow_link,
     "{bucket} of {size} {link} takes {takes}, and {others} {between?between|{messages?of|on}} the "
     "{alike:,} other{alike?|s} that {alike?carries|carry} the same: at their speed, up to {share} "
     "less "
     "of a step would be exposed",
     "look at the network between these ranks: link rate, errors, the NIC that NCCL chose "
     "(NCCL_DEBUG=INFO)"},
    {Say::slow_link_at_times, "transfers {link} take longer than usual" WITHOUT_THAT,
     "look at the network between these ranks at that time: errors, link rate, other jobs on the "
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
     "turns in holding up the others, by {hosts?what their hosts do|what they compute}: with even "
     "work a step would be {share} shorter",
     "{hosts?{loads?" BEFORE_WORK "|too few cores for the ranks of a host cause this, or "
     "Python's garbage collector}|batches of different sizes cause this: sort or pack sequences by "
     "length}"},
    {Say::late_prefetch,
     "{late} of the all-gathers begin only when the computation before them has ended: if they "
     "began earlier, a step would be {share} shorter",
     "prefetch them: backward_prefetch and forward_prefetch in FSDP1, "
     "set_modules_to_forward_prefetch and set_modules_to_backward_prefetch in FSDP2"},
    {Say::gathers_behind,
     "most steps make {calls:,} {calls?all-gather|all-gathers} of {bytes}{calls?| on average} "
     "after their backward pass, where FSDP needs none: without {calls?it|them} a step would be "
     "{share} shorter",
     "look for full_tensor(), summon_full_params(), a full state_dict or all_gather in the loop: "
     "do it every N steps, or compute on the shards and reduce the result"},
    {Say::late_reductions,
     "reductions begin only when most of a step is computed: if they are of gradients and began in "
     "the backward pass, a step would be {share} shorter",
     "DDP begins early if its buckets are smaller than all gradients (bucket_cap_mb), FSDP if "
     "layers are wrapped one by one, DeepSpeed with overlap_comm"},
    {Say::exposed_gathers,
     "all-gathers of {bytes} on average are exposed: without them a step would be {share} shorter",
     "if only a metric or a log needs them, make them every N steps, or reduce on each rank first; "
     "TPROF_CALLSITE=python shows the lines that make them"},
    {Say::blocking_h2d,
     "{calls:,} {calls?copy|copies} to the device of {bytes} on average {calls?makes|make} the "
     "program wait in each step[ of {who}]: without that it would be {share} shorter",
     "copy from pinned memory with non_blocking=True, or make the tensors on the device"},
    {Say::blocking_d2h,
     "{calls:,} {calls?copy|copies} from the device of {bytes} on average {calls?makes|make} the "
     "program wait in the middle of each step[ of {who}]: without {calls?it|them} it would be "
     "{share} shorter",
     ".item(), print and .cpu() of a tensor do so: do them once a step, or rarely"},
    {Say::exposed_copies,
     "{calls:,} {calls?copy|copies} of {bytes} on average {calls?makes|make} the device wait in "
     "each step[ of {who}]: if computation hid {calls?it|them}, it would be {share} shorter",
     "copy on a stream of its own, from or to pinned memory, while the device computes"},
    {Say::idle_devices,
     "the {one?device|devices}{all?{one?| of all ranks}| of {who}} {one?stands|stand} idle, as "
     "{one?its host does|their hosts do} not bring {one?it|them} work in time: without that a step "
     "would be {share} shorter",
     "{loads?there is no work at the beginning of a step: look at data loading (more workers, "
     "prefetching)|look for {reads?.item(), print and .cpu() in the loop, |}slow Python, an "
     "optimizer on the CPU; larger batches and CUDA graphs keep a device busy with fewer "
     "launches}"},
    {Say::gathered_again,
     "weights are gathered again in the backward pass: without that a step would be {share} "
     "shorter",
     "where there is memory for it, SHARD_GRAD_OP in FSDP1, reshard_after_forward=False in FSDP2 "
     "and ZeRO-2 in DeepSpeed avoid them, and the host time and copies that go with them"},
    {Say::reduced_again,
     "gradients are reduced in each of the {passes} backward passes of a step, where one is "
     "enough: without the others it would be {share} shorter",
     "no_sync(), or set_requires_gradient_sync(False) in FSDP2, until the last micro-batch; the "
     "gradients then take memory"},
    {Say::wide_dtype,
     "{which} {one?is|are} in float32: in bfloat16 a step would be {share} shorter",
     "{sharded?MixedPrecision(param_dtype, reduce_dtype) in FSDP1, MixedPrecisionPolicy in "
     "FSDP2|bf16_compress_hook in DDP, or bfloat16 tensors where the program itself sends them}"},
    {Say::long_steps,
     "{steps?step {which} takes far longer than the other {others:,}|{steps:,} of {of_steps:,} "
     "steps[, {which},] take far longer than the others}{host? on the hosts|}, {steps?|up to "
     "}{longest}[ in step {at}][ on {on}][, held up by {held_up_by:and},] where the usual step "
     "takes {usual}[: without that a step would be {share} shorter on average]",
     "{host?the hosts may wait there for their devices, having run ahead; TPROF_TIMING=events "
     "shows how long the devices take|}{by_nobody?look at what the program does in these steps and "
     "just before them: tprof merge draws them|}[look at the host of {host_of} there: its own "
     "code, data loading, a checkpoint, Python's garbage collector]"},
    {Say::holds_up, "{who}[ in {steps?step|steps} {which}]"},
    {Say::periodic_steps,
     "every {period} step, first step {first}, takes up to {longest}[, held up by "
     "{held_up_by:and},] where the usual step takes {usual}: without that a step would be {share} "
     "shorter on average",
     "usually that is a checkpoint, an evaluation or Python's garbage collector"},
    {Say::jumping_steps,
     "from step {step} on a step takes {after}, before that {before}: without that a step would be "
     "{share} shorter on average",
     "look at what changed there: batch size, clocks and temperature of the GPUs, other jobs on "
     "the network"},
    {Say::drifting_steps,
     "steps get longer and longer: by {grown} ({share}) over {of_steps:,} steps"},
    // Obstacles to tracing a program.
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
     "{ring_dir} (TPROF_RING_DIR) can't hold ring files: they will be in {rings|memory}",
     RING_FOLDER},
    {Say::ring_nowhere,
     "neither {folder} ({file_system}) nor /dev/shm, TMPDIR or /tmp can hold ring files: they "
     "would be in memory, and a kill would lose up to 10 s",
     RING_FOLDER},
    {Say::output_small, "{folder} has {room} left, and each process may write {quota} of lines",
     "choose another folder with TPROF_OUTPUT_DIR, or lower TPROF_QUOTA"},
    {Say::not_found, "{object} wants {library}, which is not found",
     "add its folder to LD_LIBRARY_PATH"},
    {Say::program_not_found, "{script} wants {program}, which does not exist",
     "install it, or correct the script's first line"},
    {Say::loader_not_found, "{program} wants the dynamic loader {loader}, which does not exist",
     "install it, or run on a system that has it"},
    {Say::container,
     "{launcher} starts the program in a container, which can't be looked into from here",
     "mount the library and the output folder into it, pass LD_PRELOAD and TPROF_OUTPUT_DIR on, "
     "and run tprof doctor inside; its glibc has to be {glibc} or newer"},
    {Say::elsewhere, "{launcher} starts programs on other hosts; only this host was examined",
     "{launcher} tprof doctor examines each of them"},
    {Say::other_machine,
     "{program} is for {machine}{is_64_bit?| (32 bits)}, and the library for {library_machine}",
     "use a libtprof.so that was built for it"},
    {Say::secure_execution,
     "{program} {by_mode?is setuid or setgid|has file capabilities}, so its dynamic loader ignores "
     "LD_PRELOAD",
     "run a copy without that, or directly start the program that it runs"},
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
     "{path} exports NCCL's functions itself, before the library's: only calls that it passes on "
     "are counted",
     "link it with libnccl.so"},
    {Say::pynccl,
     "vLLM is installed: if it takes NCCL's functions with ctypes (pynccl), its own collectives "
     "are not counted, but PyTorch's are",
     "set TPROF_DLSYM=1"},
    {Say::torch_without_cuda,
     "{folder} is a PyTorch without CUDA: it calls neither NCCL nor the CUDA runtime",
     "install PyTorch for CUDA"},
    {Say::nothing_served, "it is linked neither to NCCL nor to a CUDA runtime",
     "if it opens them at run time, all is well: tprof doctor DIR tells afterwards{dlsym?|; if it "
     "takes their functions with dlsym (ctypes, cffi), set TPROF_DLSYM=1}"},
};

}  // namespace

std::span<const Words> all_words() {
  return kWords;
}

}  // namespace tprof::report
