// Words for what is missing or contradictory in the files.
#include "report/words.h"

namespace tprof::report {

using diagnose::Say;

namespace {

constexpr std::string_view kMoreRoom =
    "{write_error?what a process says on standard error tells why: TPROF_OUTPUT_DIR is full, or "
    "the "
    "program closed our file|}{ring?raise TPROF_RING (NVTX ranges leave half "
    "of "
    "it to calls)|}{quota?raise TPROF_QUOTA (NVTX ranges have a quarter of it on top), or write "
    "lines of fewer ranks with TPROF_RANKS|}";

}  // namespace

std::span<const Words> words_of_files() {
  static constexpr Words kWords[] = {
      {Say::overflow,
       "a total is larger than 64 bits can hold: what is given as {most:,} is a lower bound",
       "if that can't be, a rank file is damaged: summary --per-rank tells which"},
      {Say::dropped,
       "{lines:,} counted {lines?event|events} of {who} {lines?has|have} no line in the timeline "
       "(by reason: {reasons})",
       kMoreRoom},
      {Say::dropped_ranges,
       "{lines:,} NVTX {lines?range|ranges} of {who} {lines?has|have} no line in the timeline (by "
       "reason: {reasons})",
       kMoreRoom},
      {Say::window_alone, "{who}: the file of a window alone: the counts are those of its lines",
       "the rank file has those of the whole run: {rank_file}"},
      {Say::missing_windows,
       "{who}: {missing:,} of {all:,} files of windows {missing?is|are} not here: "
       "{missing?its|their} lines are in nothing "
       "that is made of lines; the counts are those of the whole run"},
      {Say::seq_gap,
       "{who}: communicator {communicator}: of its collectives, although no line was dropped, "
       "{collectives:,} {collectives?has|have} {gap?no line|two lines}[, the first of them "
       "{first}]",
       "was the file edited or cut together? The counts come from the ledger and stand"},
      {Say::ledger_decreased, "{who}: a later ledger says less than an earlier one, in {file}",
       "was the file edited or cut together? Its totals are not to be trusted"},
      {Say::fewer_collectives,
       "the ledger at byte {offset} says {now} {now?collective|collectives} of communicator "
       "{comm}, one before it "
       "{before}"},
      {Say::fewer_calls,
       "the ledger at byte {offset} says {now} {now?call|calls} of {function} ({dtype}, "
       "communicator {comm}, "
       "size class {bytes_class}, mode {mode}), one before it {before}"},
      {Say::ledger_lines, "{who}: ledger and event lines disagree although no line was dropped",
       "was the file edited or cut together? If not, this is a bug in tprof: please report it with "
       "this file (tprof anonymize takes names out)"},
      {Say::sums_differ,
       "{captured?captured |}{function} of {dtype}[ on communicator {communicator}]: the ledger "
       "has {ledger}; the lines {lines}"},
      {Say::sums,
       "{calls:,} {calls?call|calls}, {bytes:,} {bytes?byte|bytes}[, {unfinished} unfinished]"},
      {Say::clock_step,
       "the wall clock of {host} ({who}) was set {back?back|forward} by {by} between {from} and "
       "{to}",
       "times of this host before and after it do not compare with other hosts' times: keep the "
       "clocks with chrony or ntpd, and set them before the job starts"},
      {Say::untimed,
       "{calls:,} {calls?call|calls} of {who} {calls?has|have} no device time ({why})[: {reason}]",
       "[{reason:advice}]"},
      {Say::exposure_unknown,
       "{calls:,} {calls?call|calls} of {who} {calls?has|have} no exposed time ({why})[: {reason}]",
       "[{reason:advice}]"},
      {Say::one_queue,
       "CUDA_DEVICE_MAX_CONNECTIONS=1[ on {who}]{events?: TPROF_TIMING=events is not obeyed, as "
       "timing events would keep communication from overlapping, and no call has a device time|}"
       "{gathers?; all-gathers and reduce-scatters were called, and those of FSDP lose their "
       "overlap with computation under that setting|}",
       "TPROF_TIMING=cupti gives device times with it{gathers?; tensor and sequence parallelism "
       "want the setting, a job that has FSDP alone should not set it|}"},
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
      {Say::exposure_no_pair,
       "all pairs of events were in use, so that computation was not marked"},
      {Say::exposure_unread, "the end of the computation beside them was not read"},
      {Say::exposure_no_room, "there were too many streams or calls at a time"},
      {Say::exposure_no_clock, "the device's clock was not known"},
  };
  return kWords;
}

}  // namespace tprof::report
