// Two runs and their differences.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "check/finding.h"
#include "diff/difference.h"
#include "filter/selection.h"
#include "job/jobs.h"
#include "tables/steps.h"
#include "why/times.h"

namespace tprof::diff {

using tables::OpKind;

struct Step : tables::StepCalls {
  std::optional<why::Cell> parts{};  // means over ranks; absent: unknown
};

struct Run {
  std::string path{};
  const job::Job* job = nullptr;
  std::map<OpKind, read::Amounts> totals{};  // of the whole run, summed over ranks
  std::map<OpKind, std::set<const read::Process*>> callers{};  // who made them
  std::uint64_t ranks = 0;
  std::int64_t world = 0;  // the size "world"
  bool ended = true;       // no process was killed, and no rank is missing
  // Steps that all ranks made with lines, without the first, which sets up memory and connections.
  // Empty: none are known, or not looked for.
  std::vector<Step> steps{};
  double unmet_share = 0;                   // share of waits that may be transfers
  std::uint64_t steps_seen = 0;             // including the others; 0: unknown
  bool whole_steps = true;                  // false: each may be a micro-batch
  bool by_devices = false;                  // lengths of steps are from the devices
  bool may_run_ahead = false;               // the hosts may run ahead of their devices
  std::string no_steps{};                   // why none are known: a sentence without a full stop
  std::vector<read::Skipped> unreadable{};  // files whose lines are missing
  // Findings about ranks that hold up the others. Nullopt: unknown, or filtered.
  std::optional<check::Findings> slow_ranks{};
  filter::Words only{};              // the filters; empty: none
  std::vector<std::string> notes{};  // limits of the filters
  bool of_some_calls() const {       // the filters drop calls of a step
    return !(only.ops.empty() && only.sizes.empty() && only.comms.empty() && only.phases.empty());
  }
};

// Looks at steps only if `with_lines`. `findings`: those of the unfiltered job.
Run look_at(const filter::Selection& asked, const check::Findings& findings,
            const std::string& path, bool with_lines);

bool same(long double a, long double b);  // apart from rounding

// A step of one run has the work of several steps of the other run, which may be its micro-batches.
struct Unlike {
  bool in_a = false;       // A's step has the work of several
  long double times = 0;   // of this many
  long double longer = 1;  // the work of B divided by that of A
};

// Per rank, and per step if both runs have steps: the median over steps.
struct Count {
  long double calls = 0;
  long double elements = 0;
  long double bytes = 0;
  std::uint64_t callers = 0;  // ranks that make such calls
  std::uint64_t of_ranks = 0;
};

// Calls of one kind whose counts differ.
struct CountChange {
  OpKind kind;                  // B's; A's if only A has it
  std::optional<OpKind> was{};  // A's, if different
  std::string only_in{};        // "A" or "B"; empty: both have it
  bool per_step = false;        // false: for the whole run
  Count a{};
  Count b{};
  std::optional<double> cost_ns{};  // additional time per rank and step

  bool differs() const;
};

// A time or bandwidth, per rank and step.
struct TimeChange {
  // From `compute` to `idle`: parts of the usual step, means over ranks. `communication`: waits and
  // transfers, if these can't be separated.
  enum class Of {
    step,
    long_steps,
    compute,
    unsure,
    waiting,
    transfers,
    communication,
    idle,
    exposed,
    host,
    device,
    algbw,
    busbw
  };
  Of of = Of::step;
  OpKind kind{};  // just the bucket; for bandwidths all except the data type
  double a = 0;   // ns, or GB/s
  double b = 0;
  double low = 0;  // 95 % interval of b - a
  double high = 0;
  double noise = 0;  // how large b - a may be by chance

  bool changed() const;
  bool worse() const { return of < Of::algbw ? b > a : b < a; }
  bool part() const { return of > Of::long_steps && of < Of::exposed; }
  bool lost() const {
    return of < Of::device;
  }  // it makes the step longer; of the others a part may
};

// The figures of TimeChange, in order.
struct FigureInfo {
  const char* key;   // for programs
  const char* text;  // before the name of the calls
  bool rule;         // --fail-on takes the key
};
inline constexpr FigureInfo kFigures[] = {
    {"time", "step", true},
    {"long_steps", "steps that stand out", true},
    {"compute", "computation", false},
    {"unsure", "time that may be computation or idle", false},
    {"waiting", "waiting for other ranks", false},
    {"transfers", "exposed transfers", false},
    {"communication", "waiting for other ranks or exposed transfers", false},
    {"idle", "idle time", false},
    {"exposed", "exposed time of ", true},
    {"host", "host time of ", true},
    {"device", "device time of ", true},
    {"algbw", "algbw of ", true},
    {"busbw", "busbw of ", true},
};
constexpr const FigureInfo& info(TimeChange::Of of) {
  return kFigures[static_cast<std::size_t>(of)];
}

// If more than this share of a step may be chance, the change of its length is unknown.
inline constexpr double kMuchNoise = 0.1;

// The lengths of a run's compared steps.
struct Lengths {
  std::size_t steps = 0;
  std::vector<std::int64_t> beyond{};  // numbers of the steps longer than any of the other run
  double mean_ns = 0;
  double median_ns = 0;
  double longest_ns = 0;
  std::size_t out =
      0;              // how many stand out: longer than the usual ones by more than their variation
  double out_ns = 0;  // what these add to the run
  std::vector<std::int64_t> far{};  // numbers of the steps far longer than any of the other run
  double far_ns = 0;                // what these add to the run
};

// A finding of only one run.
struct OfOneRun {
  bool in_b = false;
  check::Finding finding;
};

struct Setting {
  enum class About { setting, version, host, size };
  About about = About::setting;
  std::string what;
  std::string a;  // empty: not set
  std::string b;
};

struct Diff {
  bool same_traces = false;         // A is B
  bool per_step = false;            // counts are per usual step
  std::optional<Unlike> unlike{};   // why counts are not per step, though both runs have steps
  long double longer = 1;           // without `unlike`: B is treated as a run longer by this factor
  std::vector<CountChange> counts;  // differing counts: collectives that only one run has,
                                    // other collectives, copies; each by cost, else by bytes
  std::vector<TimeChange> times;    // all compared times, the step first
  Lengths lengths_a;
  Lengths lengths_b;
  // Ranks that hold up the others in one run only; nullopt: unknown for one of them.
  std::optional<std::vector<OfOneRun>> slow_ranks;
  std::string no_counts;           // why common counts were not compared; empty: they were
  std::string no_times;            // why times were not compared; empty: they were
  std::vector<Setting> settings;   // differing settings
  std::vector<std::string> notes;  // sentences without a full stop
};

Diff compare(const Run& a, const Run& b);

// Parts of compare().
void compare_counts(const Run& a, const Run& b, Diff& to);
void compare_times(const Run& a, const Run& b, Diff& to);
void compare_slow_ranks(const Run& a, const Run& b, Diff& to);  // call after compare_times()

// The exposed share of the device time of a kind of calls. Only ledgers have it, for the whole run
// including the first step's start-up. Nullopt: unknown.
std::optional<double> exposed_share(const Run& run, const OpKind& kind);

// The device time of a step's calls, of all ranks. If only some calls are timed, the others are
// assumed to take as long.
double device_ns(const read::Amounts& s);

// The time that calls of a kind add to a rank's usual step: host time for copies, else the exposed
// share of device time. Nullopt: unknown.
std::optional<double> lost_ns(const Run& run, const OpKind& kind);

// The differences that make `tprof diff` exit with 1:
//
//   LIST = ITEM {"," ITEM}      ITEM = NAME [":" NUMBER "%"]
//
// calls, elements, bytes: a count differs in either direction by more than that share of A's. time
// (of a step, including what long ones add on average), long_steps, exposed, host, device, algbw,
// busbw: one is worse, beyond its noise, by more than the share. slow_ranks: a rank holds up the
// others in B only, for more than the share of a step. settings, versions, hosts, size (ranks,
// steps, number of hosts): they differ; no share.
struct Rule {
  struct SlowRanks {};
  std::string name{};
  std::variant<long double Count::*, TimeChange::Of, SlowRanks, Setting::About> of{};
  double share = 0;
};

// Throws BadInput with what was expected.
std::vector<Rule> rules_of(std::string_view text);

struct Judgement {
  std::vector<std::string> failed;   // names
  std::vector<std::string> unknown;  // unknown for one of the runs
  std::set<std::string> why;         // it is unknown
};

Judgement judge(const std::vector<Rule>& rules, const Diff& diff);

}  // namespace tprof::diff
