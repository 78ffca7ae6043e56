#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "check/names.h"
#include "report/findings.h"
#include "report/report.h"
#include "report/table.h"
#include "report/words.h"

namespace tprof::report {
namespace {

using Of = diff::TimeChange::Of;

constexpr double kPart = 0.2;  // share of a longer step that is worth mentioning

// Returns the length without its sign.
std::string length_of(double ns) {
  return text::duration(static_cast<std::uint64_t>(std::llround(std::abs(ns))));
}

// "+9.0%"
std::string share(long double change, long double of) {
  return of == 0 ? "" : fmt::format("{:+.1f}%", static_cast<double>(100 * change / of));
}

std::string name_of(const tables::OpKind& k) {
  if (k.function.empty()) return std::string(bucket_name(k.bucket));
  std::string name = k.function;
  if (!k.dtype.empty() && !is_copy(k.bucket)) name += " " + k.dtype;
  name += " " + check::size_class(k.bytes_class);
  if (is_copy(k.bucket)) {
    return name + fmt::format(", {}{}{}", bucket_name(k.bucket), k.role.empty() ? "" : " ", k.role);
  }
  return name + fmt::format(", {}{}{}", k.role, k.role.empty() ? "" : " of ",
                            k.size == "world" ? "all ranks" : k.size + " ranks");
}

std::string name_of(const diff::TimeChange& t) {
  return diff::info(t.of).text + (t.of < Of::exposed ? "" : name_of(t.kind));
}

// "2.00 GB/s", "0.345 MB/s"
std::string rate_of(double GBps) {
  constexpr const char* kUnits[] = {"GB/s", "MB/s", "kB/s"};
  std::size_t unit = 0;
  double value = std::abs(GBps);
  for (; value != 0 && value < 0.1 && unit + 1 < std::size(kUnits); ++unit) value *= 1000;
  const int decimals = unit == 0 ? 2 : value < 1 ? 3 : value < 10 ? 2 : 1;
  return fmt::format("{:.{}f} {}", value, decimals, kUnits[unit]);
}

std::string cell(const diff::TimeChange& t, double value) {
  return t.of < Of::algbw ? length_of(value) : rate_of(value);
}

std::string number(long double n) {
  const auto whole = static_cast<std::uint64_t>(std::llround(n));
  return static_cast<long double>(whole) == n ? text::thousands(whole)
                                              : fmt::format("{:.4g}", static_cast<double>(n));
}

// "8 calls, 2.00 MiB"
std::string cell(const diff::Count& c) {
  if (c.calls == 0) return "-";
  const bool some = c.callers < c.of_ranks;
  const long double n = some ? static_cast<long double>(c.of_ranks) : 1;
  const std::string text = fmt::format(
      "{} call{}{}, {}", number(c.calls * n), c.calls * n == 1 ? "" : "s", some ? " in all" : "",
      text::bytes(static_cast<std::uint64_t>(std::llround(c.bytes * n))));
  return some ? text + fmt::format(", on {} of {} ranks", c.callers, c.of_ranks) : text;
}

// "+50.0% bytes", or "from 0 to 2 calls" without a base.
std::string change(long double a, long double b, const std::string& what) {
  if (a != 0) return share(b - a, a) + " " + what + "s";
  return fmt::format("from 0 to {} {}{}", number(b), what, b == 1 ? "" : "s");
}

// "+8 calls, +50.0%"; "+8 calls in all, +50.0%" if only some ranks make them.
std::string more_calls(const diff::Count& a, const diff::Count& b) {
  if (a.calls == 0 || a.of_ranks != b.of_ranks) return change(a.calls, b.calls, "call");
  const bool some = std::min(a.callers, b.callers) < a.of_ranks;
  const long double n = some ? static_cast<long double>(a.of_ranks) : 1;
  const long double more = std::abs(b.calls - a.calls) * n;
  return fmt::format("{}{} call{}{}, {}", b.calls > a.calls ? "+" : "-", number(more),
                     more == 1 ? "" : "s", some ? " in all" : "",
                     share(b.calls - a.calls, a.calls));
}

// "only in B", "+100.0% calls"
std::string change_of(const diff::CountChange& c) {
  if (!c.only_in.empty()) return "only in " + c.only_in;
  if (!diff::same(c.a.calls, c.b.calls)) return more_calls(c.a, c.b);
  if (!diff::same(c.a.bytes, c.b.bytes)) return change(c.a.bytes, c.b.bytes, "byte");
  return change(c.a.elements, c.b.elements, "element");
}

// Names the parts of a step that changed in the same direction, the largest first. ": computation
// grew by 27.26 ms, waiting for other ranks by 24.11 ms (means over ranks)"
std::string parts(const diff::Diff& d, bool longer) {
  const auto more = [&](const diff::TimeChange& t) { return longer ? t.b - t.a : t.a - t.b; };
  std::vector<diff::TimeChange> found;
  for (const diff::TimeChange& t : d.times) {
    if (t.part() && t.changed() && more(t) > kPart * more(d.times[0])) found.push_back(t);
  }
  if (found.empty()) return "";
  std::ranges::stable_sort(found, std::ranges::greater(), more);
  std::string out;
  for (const diff::TimeChange& t : found) {
    out += fmt::format("{} {}by {}", out.empty() ? ": " + name_of(t) : ", " + name_of(t),
                       out.empty() ? longer ? "grew " : "shrank " : "", length_of(more(t)));
  }
  return out + " (means over ranks)";
}

// Names the largest part of a step's change, if known.
std::string mostly(const diff::Diff& d) {
  const double all = d.times[0].b - d.times[0].a;
  double most = kPart * std::abs(all);
  std::string out = parts(d, all > 0);
  if (!out.empty()) return out;
  for (const diff::TimeChange& t : d.times) {
    const double part = all > 0 ? t.b - t.a : t.a - t.b;
    if (t.of < Of::exposed || !t.lost() || !t.changed() || part < most) continue;
    most = part;
    out =
        fmt::format(": the {} {} by {}", name_of(t), all > 0 ? "grew" : "shrank", length_of(part));
  }
  return out;
}

// The steps of the run that is described, and of the other run.
struct LongerRun {
  const diff::Lengths& more;
  const diff::Lengths& less;
  const char* name;  // of the described run
  const char* other;
};
LongerRun longer_run(const diff::Diff& d, bool b) {
  return b ? LongerRun{d.lengths_b, d.lengths_a, "B", "A"}
           : LongerRun{d.lengths_a, d.lengths_b, "A", "B"};
}

// "3,20", or "from 3 to 59" if there are many.
std::string numbers_of(const std::vector<std::int64_t>& steps) {
  constexpr std::size_t kMostNamed = 8;
  return steps.size() > kMostNamed ? fmt::format("from {} to {}", steps.front(), steps.back())
                                   : fmt::format("{}", fmt::join(steps, ","));
}

// States plain facts, as chance may be large. "In A and B all steps take 82.00 ms and 164.00 ms on
// average, the median 80.10 ms and 188.30 ms, and 2 of 19 steps of B, 3,12, take longer than any of
// A's, up to 227.44 ms against 111.12 ms."
std::string of_lengths(const diff::Diff& d) {
  const diff::Lengths& a = d.lengths_a;
  const diff::Lengths& b = d.lengths_b;
  if (a.steps == 0 || b.steps == 0) return "";
  const LongerRun t = longer_run(d, b.longest_ns >= a.longest_ns);
  const std::size_t n = t.more.beyond.size();
  const std::string beyond =
      n == 0
          ? ""
          : fmt::format(
                ", and {} of {} steps of {}, {}, {} longer than any of {}'s, up to {} against {}",
                n, t.more.steps, t.name, numbers_of(t.more.beyond), n == 1 ? "takes" : "take",
                t.other, length_of(t.more.longest_ns), length_of(t.less.longest_ns));
  return fmt::format(" In A and B all steps take {} and {} on average, the median {} and {}{}.",
                     length_of(a.mean_ns), length_of(b.mean_ns), length_of(a.median_ns),
                     length_of(b.median_ns), beyond);
}

// Returns how much outstanding steps add, if that changed and far_ones() does not cover most of it;
// else null.
const diff::TimeChange* stand_out(const diff::Diff& d) {
  const auto rare = std::ranges::find(d.times, Of::long_steps, &diff::TimeChange::of);
  if (rare == d.times.end() || !rare->changed()) return nullptr;
  const double by_far = std::max(d.lengths_a.far_ns, d.lengths_b.far_ns);
  const double by_all = std::abs(rare->b - rare->a) * static_cast<double>(d.lengths_b.steps);
  return by_far > by_all / 2 ? nullptr : &*rare;
}

std::string of_usual_step(const diff::Diff& d) {
  const diff::TimeChange& step = d.times[0];
  if (!step.changed() && step.noise > diff::kMuchNoise * step.a) {
    return fmt::format(
               "Step: A {}, B {}. Runs like these differ by up to {} by chance, so this may be "
               "noise: trace more steps.",
               length_of(step.a), length_of(step.b), length_of(step.noise)) +
           (d.lengths_a.far.empty() && d.lengths_b.far.empty() ? of_lengths(d) : "");
  }
  if (!step.changed()) {
    return fmt::format("B's {} takes as long as A's, {}, within {:.1f}%.",
                       stand_out(d) ? "usual step" : "step", length_of(step.a),
                       100 * step.noise / step.a);
  }
  const auto percent = [&](double ns) { return std::abs(100 * ns / step.a); };
  const auto [from, to] = std::minmax({percent(step.low), percent(step.high)});
  // Steps that stand out may make up for it.
  const bool longer = step.b > step.a;
  const bool against = d.lengths_a.steps != 0 && d.lengths_b.steps != 0 &&
                       longer != (d.lengths_b.mean_ns > d.lengths_a.mean_ns);
  return fmt::format("B's {} takes {}, {:.1f}% {} than A's ({:.1f} to {:.1f}%){}.",
                     against ? "usual step" : "step", length_of(step.b), percent(step.b - step.a),
                     longer ? "longer" : "shorter", from, to, mostly(d)) +
         (against ? of_lengths(d) : "");
}

// "1 of 39 steps of B, 20, takes 24.85 s, but none of A more than 186.31 ms: that adds 24.73 s, or
// 634.17 ms per step. "
std::string far_ones(const diff::Diff& d) {
  const LongerRun t = longer_run(d, !d.lengths_b.far.empty());
  const std::size_t n = t.more.far.size();
  if (n == 0) return "";
  return fmt::format(
      "{} of {} steps of {}, {}, {} {}, but none of {} more than {}: that adds {}, or {} per "
      "step. ",
      n, t.more.steps, t.name, numbers_of(t.more.far), n == 1 ? "takes" : "take up to",
      length_of(t.more.longest_ns), t.other, length_of(t.less.longest_ns), length_of(t.more.far_ns),
      length_of(t.more.far_ns / static_cast<double>(t.more.steps)));
}

// "3 of 19 steps of B, up to 1.03 s, are 2.90 s longer together, but none of A stands out"
std::string long_ones(const LongerRun& t) {
  const bool one = t.more.out == 1;
  const std::string are =
      fmt::format("{} of {} steps of {}, {}{}, {} {} longer{}", t.more.out, t.more.steps, t.name,
                  one ? "of " : "up to ", length_of(t.more.longest_ns), one ? "is" : "are",
                  length_of(t.more.out_ns), one ? "" : " together");
  if (t.less.out == 0) return fmt::format("{}, but none of {} stands out", are, t.other);
  return fmt::format("{}, and {} of {} of {} {}", are, t.less.out, t.less.steps, t.other,
                     length_of(t.less.out_ns));
}

std::string of_step(const diff::Diff& d) {
  if (d.unlike) {
    const char* large = d.unlike->in_a ? "A" : "B";
    const char* small = d.unlike->in_a ? "B" : "A";
    return fmt::format(
        "Steps are not comparable: one of {} has the work of {:g} of {}, which may be its "
        "micro-batches. So times are not compared{}.",
        large, static_cast<double>(d.unlike->times), small,
        d.no_counts.empty() ? ", and counts over the whole run" : "");
  }
  if (d.times.empty()) {
    return "Times are not compared: " +
           (d.no_times.empty() ? "these calls have no known times" : d.no_times) + ".";
  }
  if (d.times[0].of != Of::step) {  // filtered: other calls also determine the length of steps
    return std::ranges::any_of(d.times, &diff::TimeChange::changed)
               ? "Times of these calls changed beyond their noise."
               : "Times of these calls are within their noise.";
  }
  const std::string usual = of_usual_step(d);
  const diff::TimeChange* rare = stand_out(d);
  if (rare == nullptr) return far_ones(d) + usual;
  const std::string others =
      fmt::format("Steps that stand out from the usual ones add {} {} to a step on average: {}.",
                  length_of(rare->b - rare->a), rare->b > rare->a ? "more" : "less",
                  long_ones(longer_run(d, rare->b > rare->a)));
  // The part that changed comes first.
  return far_ones(d) + (d.times[0].changed() ? usual + " " + others : others + " " + usual);
}

// "calls and bytes": the counts that differ, by their names in --fail-on.
std::string what_differs(const std::vector<diff::CountChange>& counts) {
  const auto any = [&](long double diff::Count::*of) {
    return std::ranges::any_of(
        counts, [&](const diff::CountChange& c) { return !diff::same(c.a.*of, c.b.*of); });
  };
  std::vector<std::string> names;
  if (any(&diff::Count::calls)) names.emplace_back("calls");
  if (any(&diff::Count::elements)) names.emplace_back("elements");
  if (any(&diff::Count::bytes)) names.emplace_back("bytes");
  return fmt::format("{}", fmt::join(names, " and "));
}

std::string of_counts(const diff::Diff& d) {
  std::string said;
  if (!d.counts.empty()) {
    const diff::CountChange& first = d.counts[0];
    const bool whole_run = d.per_step && !first.per_step;
    said =
        fmt::format(" {} of calls {} in {}: {}{}{}, {}.", check::counted(d.counts.size(), "kind"),
                    d.counts.size() == 1 ? "differs" : "differ", what_differs(d.counts),
                    d.counts.size() == 1 ? "" : "first of all ", name_of(first.kind),
                    whole_run ? ", in the whole run" : "", change_of(first));
    if (!first.only_in.empty()) {
      const diff::Count& c = first.only_in == "A" ? first.a : first.b;
      said.pop_back();
      said += fmt::format(": {}{}.", cell(c),
                          c.callers < c.of_ranks ? ""
                          : first.per_step       ? " per rank and step"
                                                 : " per rank");
    }
  }
  if (!d.no_counts.empty()) {
    return said + fmt::format(" {} are not compared: {}.",
                              said.empty() ? "Counts" : "Counts of other calls", d.no_counts);
  }
  return said.empty() ? " Counts are the same." : said;
}

constexpr std::size_t kMostShown = 40;

// A row of the printed table.
struct ChangeRow {
  std::optional<double> cost_ns;  // what it adds to the step
  std::string what, a, b, change, noise;
};

std::vector<Column<ChangeRow>> change_columns(bool noise) {
  return {{"cost", nullptr, Unit::right_text,
           [](const ChangeRow& r) {
             return r.cost_ns ? Value((*r.cost_ns < 0 ? "-" : "+") + length_of(*r.cost_ns))
                              : Value();
           }},
          {"what", nullptr, Unit::text, &ChangeRow::what},
          {"A", nullptr, Unit::right_text, &ChangeRow::a},
          {"B", nullptr, Unit::right_text, &ChangeRow::b},
          {"change", nullptr, Unit::right_text, &ChangeRow::change},
          {noise ? "noise" : nullptr, nullptr, Unit::right_text, &ChangeRow::noise, Show::if_room}};
}

std::vector<Column<diff::Setting>> setting_columns() {
  return {{"what", "what", Unit::text, &diff::Setting::what},
          {"A", "a", Unit::text, [](const diff::Setting& s) { return or_unknown(s.a); }},
          {"B", "b", Unit::text, [](const diff::Setting& s) { return or_unknown(s.b); }}};
}

Section changes(const diff::Diff& d, std::size_t width) {
  std::vector<ChangeRow> rows;
  for (const diff::TimeChange& t : d.times) {
    if (!t.changed()) continue;
    rows.push_back({t.lost() ? std::optional(t.b - t.a) : std::nullopt, name_of(t), cell(t, t.a),
                    cell(t, t.b), share(t.b - t.a, t.a), cell(t, t.noise)});
  }
  for (const diff::CountChange& c : d.counts) {
    rows.push_back({c.cost_ns,
                    (c.was ? name_of(*c.was) + " -> " : "") + name_of(c.kind) +
                        (c.per_step == d.per_step ? "" : ", of the whole run"),
                    cell(c.a), cell(c.b), change_of(c), ""});
  }
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [](const ChangeRow& r) { return std::abs(r.cost_ns.value_or(0)); });
  return {.title = d.per_step ? "Changes per rank and step" : "Changes per rank",
          .table = sheet(change_columns(std::ranges::any_of(
                             rows, [](const auto& r) { return !r.noise.empty(); })),
                         rows, For::people),
          .room = {.width = width,
                   .breaks = true,
                   .rows = kMostShown,
                   .names = " changes",
                   .tells_columns = true}};
}

std::string side(const char* name, const diff::Run& run) {
  return fmt::format(
      "{}  {}: {}, {}\n", name, text::printable(run.path), check::counted(run.ranks, "rank"),
      run.steps_seen == 0 ? "steps not known" : check::counted(run.steps_seen, "step"));
}

// "In B, but not in A: the device of rank 1 stands idle longer than the others' in …"
std::string only_in_one(const diff::Diff& d) {
  std::string out;
  if (!d.slow_ranks) return out;
  for (const diff::OfOneRun& one : *d.slow_ranks) {
    out += fmt::format("In {}, but not in {}: {}\n", one.in_b ? "B" : "A", one.in_b ? "A" : "B",
                       text::printable(sentence(one.finding.text)));
  }
  return out;
}

template <typename T>
Json if_known(bool known, const T& value) {
  return known ? Json(value) : Json();
}

Json json_of(const diff::Run& run) {
  return {{"path", run.path},
          {"run_id", or_null(run.job->run_id)},
          {"ranks", run.ranks},
          {"ended", run.ended},
          {"steps", if_known(run.steps_seen != 0, run.steps_seen)},
          {"steps_compared", run.steps.size()}};
}

Json json_of(const tables::OpKind& k) {
  return {{"bucket", bucket_name(k.bucket)},
          {"name", or_null(k.function)},
          {"dtype", or_null(k.dtype)},
          {"bytes_class", if_known(!k.function.empty(), k.bytes_class)},
          {"role", or_null(k.role)},
          {"comm_size", or_null(k.size)}};
}

Json json_of(const diff::Count& c) {
  return {{"calls", static_cast<double>(c.calls)},
          {"elements", static_cast<double>(c.elements)},
          {"bytes", static_cast<double>(c.bytes)},
          {"ranks", if_known(c.of_ranks != 0, c.callers)}};
}

Json json_of(const diff::CountChange& c) {
  return {{"kind", json_of(c.kind)},
          {"was", c.was ? json_of(*c.was) : Json()},
          {"only_in", or_null(c.only_in)},
          {"per", c.per_step ? "step" : "run"},
          {"a", json_of(c.a)},
          {"b", json_of(c.b)},
          {"cost_ns", or_null(c.cost_ns)}};
}

Json json_of(const diff::TimeChange& t) {
  return {{"of", diff::info(t.of).key},
          {"kind", t.of < diff::TimeChange::Of::exposed ? Json() : json_of(t.kind)},
          {"a", t.a},
          {"b", t.b},
          {"low", t.low},
          {"high", t.high},
          {"noise", t.noise},
          {"changed", t.changed()}};
}

Json json_of(const diff::Lengths& l) {
  return {{"steps", l.far}, {"more_ns", l.far_ns}};
}

Json json_of(const diff::OfOneRun& one) {
  Json j = {{"only_in", one.in_b ? "B" : "A"}};
  j.update(to_json({one.finding}, Detail::full)[0]);
  return j;
}

template <typename T>
Json array_of(const std::vector<T>& all) {
  Json j = Json::array();
  for (const T& one : all) j.push_back(json_of(one));
  return j;
}

// True if the step takes longer in B, or may: then a report on B is worth reading.
bool may_be_longer(const diff::Diff& d) {
  if (d.slow_ranks && std::ranges::any_of(*d.slow_ranks, &diff::OfOneRun::in_b)) return true;
  return std::ranges::any_of(d.times, [](const diff::TimeChange& t) {
    if (t.of > Of::long_steps || !t.worse()) return false;
    return t.changed() || (t.of == Of::step && t.noise > diff::kMuchNoise * t.a);
  });
}

bool changed(const diff::Diff& d) {
  return !d.counts.empty() || std::ranges::any_of(d.times, &diff::TimeChange::changed);
}

// True if counts were compared and nothing changed.
bool same(const diff::Diff& d) {
  return d.no_counts.empty() && !changed(d) && d.lengths_a.far.empty() && d.lengths_b.far.empty() &&
         (!d.slow_ranks || d.slow_ranks->empty());
}

// Returns the conclusion in one or two sentences.
std::string verdict(const diff::Diff& d) {
  // With filters the lengths of steps are not compared.
  const bool step = !d.times.empty() && d.times[0].of == Of::step;
  const double noise = step ? d.times[0].noise / d.times[0].a : 0;
  if (same(d) && d.same_traces) return "A and B are the same traces: nothing can differ.";
  if (same(d) && noise <= diff::kMuchNoise && !d.unlike) {
    return "Nothing changed: counts are the same, " +
           (d.times.empty() ? d.no_times.empty()
                                  ? "and there are no times to compare."
                                  : "and times are not compared (" + d.no_times + ")."
            : !step         ? "and the times of these calls are within their noise."
                            : fmt::format("times within {:.1f}%.", 100 * noise));
  }
  return of_step(d) + of_counts(d);
}

}  // namespace

std::string to_text(const diff::Run& a, const diff::Run& b, const diff::Diff& d,
                    const diff::Judgement& judgement, std::size_t width) {
  std::string out = verdict(d) + "\n" + only_in_one(d) + only_text(a.only, {}, "filter: ") +
                    (b.only.merged == a.only.merged ? "" : only_text(b.only, {}, "filter of B: ")) +
                    "\n" + side("A", a) + side("B", b);
  for (const std::string& note : a.notes) out += "note: A: " + text::printable(note) + "\n";
  for (const std::string& note : b.notes) out += "note: B: " + text::printable(note) + "\n";
  if (d.longer != 1) {
    out += fmt::format(
        "note: B made {:.4g} times as many calls of most kinds as A: it is treated as a run that "
        "is longer by this factor\n",
        static_cast<double>(d.longer));
  }
  for (const std::string& note : d.notes) out += "note: " + text::printable(note) + "\n";
  if (changed(d)) out += to_text(changes(d, width));
  if (!d.settings.empty()) {
    out += to_text({.title = "Other differences",
                    .table = sheet(setting_columns(), d.settings, For::people),
                    .room = {.width = width, .breaks = true}});
  }
  if (!judgement.failed.empty()) {
    out += fmt::format("\nChanged, of the figures that --fail-on names: {}\n",
                       fmt::join(judgement.failed, ", "));
  }
  if (!judgement.unknown.empty()) {
    out += fmt::format("{}Unknown, of the figures that --fail-on names: {}\n",
                       judgement.failed.empty() ? "\n" : "", fmt::join(judgement.unknown, ", "));
  }
  if (may_be_longer(d)) {
    out += fmt::format("\nNext: tprof report {}  (what for, and which rank)\n",
                       text::printable(text::shell_word(b.path)));
  }
  return out;
}

std::string to_json(const diff::Run& a, const diff::Run& b, const diff::Diff& d,
                    const diff::Judgement& judgement) {
  Json j = {{"schema", "tprof-diff/1"},
            {"a", json_of(a)},
            {"b", json_of(b)},
            {"same", same(d)},
            {"verdict", verdict(d)},
            {"longer", static_cast<double>(d.longer)},
            {"counts", array_of(d.counts)},
            {"no_counts", or_null(d.no_counts)},
            {"times", d.no_times.empty() ? array_of(d.times) : Json()},
            {"no_times", or_null(d.no_times)},
            {"far_longer", {{"a", json_of(d.lengths_a)}, {"b", json_of(d.lengths_b)}}},
            {"slow_ranks", d.slow_ranks ? array_of(*d.slow_ranks) : Json()},
            {"settings", table_json(setting_columns(), d.settings)},
            {"notes", d.notes},
            {"failed", judgement.failed},
            {"not_known", judgement.unknown}};
  if (!(a.only.sentence() + b.only.merged).empty()) {
    j["only"] = only_json(a.only, a.notes);
    if (b.only.merged != a.only.merged) j["only"]["notes"].push_back("B: " + b.only.sentence());
    for (const std::string& note : b.notes) j["only"]["notes"].push_back(note);
  }
  return printed(j);
}

}  // namespace tprof::report
