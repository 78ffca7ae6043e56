// The report of a job: everything `tprof report` tells, as a screen of text or one HTML file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "check/diagnose.h"
#include "interpose/base/not_copied.h"
#include "report/verdict.h"
#include "summary/summary.h"
#include "tables/durations.h"
#include "why/why.h"

namespace tprof::page {

// Calls and computation of some ranks in one step, on a common axis.

struct Bar {
  std::string name;
  Bucket bucket = Bucket::ALLGATHER;
  std::string communicator;  // id; empty: none
  std::uint64_t bytes = 0;
  std::int64_t ts_ns = 0;  // on the rank's own clock
  std::int64_t dur_ns = 0;
};

struct TimelineRank {
  const read::Process* rank = nullptr;
  steps::Interval called{};  // the host's step
  std::int64_t from_ns = 0;  // of the shown step, on the rank's own clock
  std::int64_t to_ns = 0;
  std::vector<Bar> bars{};     // the longest ones that ran in it
  std::uint64_t left_out = 0;  // omitted ones, and untimed ones called in the host's step
};

// The end of a device's step is known to a millionth of its length.
inline std::int64_t unseen_ns(const TimelineRank& step) {
  return (step.to_ns - step.from_ns) / 1'000'000;
}

struct Timeline {
  static constexpr std::size_t kMostRanks = 64;
  static constexpr std::size_t kMostBars = 240;  // per rank

  std::string which;  // "slowest" or "typical"
  std::int64_t step = 0;
  std::int64_t length_ns = 0;
  bool on_device = false;  // device times; else times of host calls
  std::vector<TimelineRank> ranks{};
};

struct Gathered : NotCopied {            // parts refer to each other
  tables::Summary summary;               // of the whole job
  std::optional<tables::Summary> asked;  // with filters; nullopt: none
  check::Diagnosed said;
  std::optional<align::Clocks> clocks;
  tables::Spectra spectra;
  // How long the job took for each of summary.found.steps: from device times, else the mean over
  // hosts that don't run ahead of other hosts. Nullopt: unknown.
  std::vector<std::optional<std::int64_t>> lengths;
  std::vector<Timeline> timelines;
  why::Why why;

  const tables::Summary& calls() const { return asked ? *asked : summary; }
};

// Reads the lines twice: for what needs no steps, and for the rest. With device times, reads the
// lines of ranks in timelines once more.
void gather(const run::Lines& lines, Gathered& to);

// Replaces figures of calls by those of the filtered calls: buckets, operations, durations and
// communicators. Causes, steps and late ranks remain those of the whole job. The selection must
// outlive `to`.
void gather_calls(const filter::Selection& asked, Gathered& to);
inline constexpr const char* kOfCalls[] = {"buckets", "per_rank", "ops", "hist", "comms"};

// Programs warm up in the first of several steps, so its length is not reported.
bool leaves_first_out(const Gathered& g);
std::vector<std::size_t> warm_steps(const Gathered& g);  // into `lengths`, shortest first
report::Known known_of(const Gathered& g);

// About 40 lines of at most 80 columns, with complete sentences. `next`: the command that writes
// the page.
std::string to_text(const Gathered& g, const std::string& next);
// The verdict, advice, and what else costs time, in a few lines.
std::string verdict(const Gathered& g);
std::string to_json(const Gathered& g);
std::string to_html(const Gathered& g);  // self-contained

}  // namespace tprof::page
