// Two runs, and what differs between them.
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
  std::int64_t number = 0;
  std::optional<why::Cell> parts{};  // means over ranks; absent: not known
};

struct Run {
  std::string path{};
  const job::Job* job = nullptr;
  std::map<OpKind, read::Amounts> totals{};                    // of the whole run, sums over ranks
  std::map<OpKind, std::set<const read::Process*>> callers{};  // who made these
  std::uint64_t ranks = 0;
  std::int64_t world = 0;  // what the size "world" is
  bool ended = true;       // no process was killed, and all ranks are here
  // Steps that all ranks made and have lines of, without the first: memory and connections are made
  // in it. Empty: none are known, or nobody looked.
  std::vector<Step> steps{};
  double unmet_share = 0;                   // of the waiting: it may be transfers
  std::uint64_t steps_seen = 0;             // with the others; 0: not known
  bool whole_steps = true;                  // false: each may be a micro-batch
  bool by_devices = false;                  // the devices tell how long steps are
  bool may_run_ahead = false;               // the hosts, of their devices
  std::string no_steps{};                   // why none are known: a sentence without its full stop
  std::vector<read::Skipped> unreadable{};  // files whose lines are left out
  // They tell of ranks that hold up the others. Nullopt: nobody knows, or only some calls were
  // asked for.
  std::optional<check::Findings> slow_ranks{};
  filter::Words only{};              // which calls these are; empty: all
  std::vector<std::string> notes{};  // what is not exact for that
  bool of_some_calls() const {       // of a step
    return !(only.ops.empty() && only.sizes.empty() && only.comms.empty() && only.phases.empty());
  }
};

// Looks at the steps only if `with_lines`. `findings` are those of all that `asked` is of.
Run look_at(const filter::Selection& asked, const check::Findings& findings,
            const std::string& path, bool with_lines);

bool same(long double a, long double b);  // but for the doubt of divisions

// A step that was found of one run has the work of several of the other's, which may be
// micro-batches of such a step.
struct Unlike {
  bool in_a = false;       // A's step is the one that has the work of several
  long double times = 0;   // of so many
  long double longer = 1;  // how many times as much work B did as A
};

// Per rank, and per step where both runs have steps: of the usual step, the median of all.
struct Count {
  long double calls = 0;
  long double elements = 0;
  long double bytes = 0;
  std::uint64_t callers = 0;  // ranks that make such calls
  std::uint64_t of_ranks = 0;
};

// Calls of one kind whose counts differ.
struct CountChange {
  OpKind kind;                  // B's; A's if only that has it
  std::optional<OpKind> was{};  // A's, if it is another
  std::string only_in{};        // "A" or "B"; empty: both have it
  bool per_step = false;        // false: of the whole run
  Count a{};
  Count b{};
  std::optional<double> cost_ns{};  // more time lost per rank and step

  bool differs() const;
};

// A time or bandwidth, per rank and step.
struct TimeChange {
  // From `compute` to `idle`: parts of the usual step, means over ranks. `communication` is waiting
  // and transfers, where these can't be told apart.
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
  OpKind kind{};  // the bucket alone, and of bandwidths all but the data type
  double a = 0;   // ns, or GB/s
  double b = 0;
  double low = 0;  // of b - a, 95 %
  double high = 0;
  double noise = 0;  // what b - a may be by chance

  bool changed() const;
  bool worse() const { return of < Of::algbw ? b > a : b < a; }
  bool part() const { return of > Of::long_steps && of < Of::exposed; }
  bool lost() const { return of < Of::device; }  // it holds up the step: of others a part may
};

// The figures of TimeChange, in their order.
struct FigureInfo {
  const char* key;   // for programs
  const char* text;  // before the name of what it is of
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

// The change of a step's length of which more may be chance than this share is not known.
inline constexpr double kMuchNoise = 0.1;

// How long the compared steps of a run are.
struct Lengths {
  std::size_t steps = 0;
  std::vector<std::int64_t> beyond{};  // the numbers of those longer than any of the other run
  double mean_ns = 0;
  double median_ns = 0;
  double longest_ns = 0;
  std::size_t out = 0;  // that stand out: longer than its usual ones by more than these vary
  double out_ns = 0;    // what they add to the run together
  std::vector<std::int64_t> far{};  // the numbers of those far longer than any of the other run
  double far_ns = 0;                // what these add to the run together
};

// A finding that one run alone has.
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
  bool per_step = false;            // counts are those of the usual step
  std::optional<Unlike> unlike{};   // why they are not, though both have steps
  long double longer = 1;           // otherwise B is taken for a run so many times as long
  std::vector<CountChange> counts;  // those that differ: collectives that one alone has,
                                    // others, copies; of each by cost, else by bytes
  std::vector<TimeChange> times;    // all that were compared, the step first
  Lengths lengths_a;
  Lengths lengths_b;
  // Ranks that hold up the others in one run alone; nullopt: not known of both.
  std::optional<std::vector<OfOneRun>> slow_ranks;
  std::string no_counts;           // why none were that both have; empty: they were
  std::string no_times;            // why they were not; empty: they were
  std::vector<Setting> settings;   // those that differ
  std::vector<std::string> notes;  // sentences without their full stop
};

Diff compare(const Run& a, const Run& b);

// Parts of it.
void compare_counts(const Run& a, const Run& b, Diff& to);
void compare_times(const Run& a, const Run& b, Diff& to);
void compare_slow_ranks(const Run& a, const Run& b, Diff& to);  // behind times

// How much of the device's time in calls of a kind is exposed, which only the ledgers tell, and of
// the whole run: the first step's start-up is in it. Nullopt: not known.
std::optional<double> exposed_share(const Run& run, const OpKind& kind);

// The device's time in calls of a step, of all ranks. Where one call of several is timed, the
// others take as long.
double device_ns(const read::Amounts& s);

// The time that calls of a kind take from the usual step of a rank: of copies that of the host,
// else that share of the device's. Nullopt: not known.
std::optional<double> lost_ns(const Run& run, const OpKind& kind);

// The differences that make `tprof diff` exit with 1:
//
//   LIST = ITEM {"," ITEM}      ITEM = NAME [":" NUMBER "%"]
//
// calls, elements, bytes: a count that differs, in either direction, by more than that share of
// A's. time (of a step, with what long ones add to it on average), long_steps, exposed, host,
// device, algbw, busbw: one that is worse, beyond its noise, by more than the share. slow_ranks:
// one holds up the others in B alone, for more than the share of a step. settings, versions, hosts,
// size (ranks, steps, number of hosts): they differ; no share.
struct Rule {
  struct SlowRanks {};
  std::string name{};
  std::variant<long double Count::*, TimeChange::Of, SlowRanks, Setting::About> of{};
  double share = 0;
};

// Throws BadInput that says what was expected.
std::vector<Rule> rules_of(std::string_view text);

struct Judgement {
  std::vector<std::string> failed;   // names
  std::vector<std::string> unknown;  // of what is not known of both runs
  std::set<std::string> why;         // it is not
};

Judgement judge(const std::vector<Rule>& rules, const Diff& diff);

}  // namespace tprof::diff
