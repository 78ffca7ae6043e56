// The report of a job: all that `tprof report` tells, and it as a screen of text or one HTML file.
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

// The calls and computation of some ranks in one step, on one axis.

struct Bar {
  std::string name;
  Bucket bucket = Bucket::ALLGATHER;
  std::string communicator;  // id; empty: none
  std::uint64_t bytes = 0;
  std::int64_t ts_ns = 0;  // in the rank's own time
  std::int64_t dur_ns = 0;
};

struct TimelineRank {
  const read::Process* rank = nullptr;
  steps::Interval called{};  // the host's step
  std::int64_t from_ns = 0;  // of the step that is shown, in the rank's own time
  std::int64_t to_ns = 0;
  std::vector<Bar> bars{};     // the longest of those that ran in it
  std::uint64_t left_out = 0;  // of these, and untimed ones that were called in the host's step
};

// The end of a device's step is known to a ten-millionth of its length.
inline std::int64_t unseen_ns(const TimelineRank& step) {
  return (step.to_ns - step.from_ns) / 1'000'000;
}

struct Timeline {
  static constexpr std::size_t kMostRanks = 64;
  static constexpr std::size_t kMostBars = 240;  // of a rank

  std::string which;  // "slowest" or "typical"
  std::int64_t step = 0;
  std::int64_t length_ns = 0;
  bool on_device = false;  // the times are the device's; else those of the hosts' calls
  std::vector<TimelineRank> ranks{};
};

struct Gathered : NotCopied {            // its parts refer to each other
  tables::Summary summary;               // of the whole job
  std::optional<tables::Summary> asked;  // of the calls that were asked for; nullopt: of all
  check::Diagnosed said;
  std::optional<align::Clocks> clocks;
  tables::Spectra spectra;
  // How long each of summary.found.steps took the job: by its devices where these were followed,
  // else the mean of the hosts that don't run ahead of the others. Nullopt: not known.
  std::vector<std::optional<std::int64_t>> lengths;
  std::vector<Timeline> timelines;
  why::Why why;

  const tables::Summary& calls() const { return asked ? *asked : summary; }
};

// Reads the lines twice: for what needs no steps, and for the rest. Those of the ranks in timelines
// once more, where the devices' times have to say which steps these are of.
void gather(const run::Lines& lines, Gathered& to);

// Puts what was asked for in place of the figures of calls: buckets, operations, how long they
// took, and communicators. Why the job is slow, its steps and who came late stay those of the whole
// job, as other calls make them. The selection has to stay.
void gather_calls(const filter::Selection& asked, Gathered& to);
inline constexpr const char* kOfCalls[] = {"buckets", "per_rank", "ops", "hist", "comms"};

// Steps whose length is told: all but the first of several, in which programs warm up.
// The first of several steps is no usual one.
bool leaves_first_out(const Gathered& g);
std::vector<std::size_t> warm_steps(const Gathered& g);  // places in `lengths`, the shortest first
report::Known known_of(const Gathered& g);

// Some 40 lines of at most 80 columns, in which sentences are whole. `next`: the command that
// writes the page.
std::string to_text(const Gathered& g, const std::string& next);
// The verdict, what to do, and what else costs time: a few lines.
std::string verdict(const Gathered& g);
std::string to_json(const Gathered& g);
std::string to_html(const Gathered& g);  // needs nothing but itself

}  // namespace tprof::page
