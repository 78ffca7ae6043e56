#include "report/diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "check/names.h"
#include "report/findings.h"
#include "report/only.h"
#include "report/section.h"
#include "report/words.h"

namespace tprof::report {
namespace {

constexpr std::size_t kMostShown = 40;

// A row of the one table for people.
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
      "{}  {}: {}, {}\n", name, text::printable(run.path), diagnose::counted(run.ranks, "rank"),
      run.steps_seen == 0 ? "steps not known" : diagnose::counted(run.steps_seen, "step"));
}

// "In B, and not in A: the device of rank 1 stands idle longer than the others' in …"
std::string only_in_one(const diff::Diff& d) {
  std::string out;
  if (!d.slow_ranks) return out;
  for (const diff::OfOneRun& one : *d.slow_ranks) {
    out += fmt::format("In {}, and not in {}: {}\n", one.in_b ? "B" : "A", one.in_b ? "A" : "B",
                       text::printable(sentence(one.finding.text)));
  }
  return out;
}

template <typename T>
Json if_known(bool known, const T& value) {
  return known ? Json(value) : Json();
}
Json text_or_null(const std::string& s) {
  return if_known(!s.empty(), s);
}

Json json_of(const diff::Run& run) {
  return {{"path", run.path},
          {"run_id", text_or_null(run.job->run_id)},
          {"ranks", run.ranks},
          {"ended", run.ended},
          {"steps", if_known(run.steps_seen != 0, run.steps_seen)},
          {"steps_compared", run.steps.size()}};
}

Json json_of(const stats::OpKind& k) {
  return {{"bucket", bucket_name(k.bucket)},
          {"name", text_or_null(k.function)},
          {"dtype", text_or_null(k.dtype)},
          {"bytes_class", if_known(!k.function.empty(), k.bytes_class)},
          {"role", text_or_null(k.role)},
          {"comm_size", text_or_null(k.size)}};
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
          {"only_in", text_or_null(c.only_in)},
          {"per", c.per_step ? "step" : "run"},
          {"a", json_of(c.a)},
          {"b", json_of(c.b)},
          {"cost_ns", if_known(c.cost_ns.has_value(), c.cost_ns.value_or(0))}};
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

}  // namespace

std::string to_text(const diff::Run& a, const diff::Run& b, const diff::Diff& d,
                    const diff::Judgement& judgement, std::size_t width) {
  std::string out = verdict(d) + "\n" + only_in_one(d) + only_text(a.only, {}, "filter: ") + "\n" +
                    side("A", a) + side("B", b);
  for (const std::string& note : a.notes) out += "note: A: " + text::printable(note) + "\n";
  for (const std::string& note : b.notes) out += "note: B: " + text::printable(note) + "\n";
  if (d.longer != 1) {
    out += fmt::format(
        "note: B made {:.4g} times as many calls of most kinds as A: it is taken for "
        "a run so many times as long\n",
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
    out +=
        fmt::format("\nChanged of what --fail-on names: {}\n", fmt::join(judgement.failed, ", "));
  }
  if (!judgement.unknown.empty()) {
    out += fmt::format("{}Not known of what --fail-on names: {}\n",
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
            {"no_counts", text_or_null(d.no_counts)},
            {"times", d.no_times.empty() ? array_of(d.times) : Json()},
            {"no_times", text_or_null(d.no_times)},
            {"far_longer", {{"a", json_of(d.lengths_a)}, {"b", json_of(d.lengths_b)}}},
            {"slow_ranks", d.slow_ranks ? array_of(*d.slow_ranks) : Json()},
            {"settings", table_json(setting_columns(), d.settings)},
            {"notes", d.notes},
            {"failed", judgement.failed},
            {"not_known", judgement.unknown}};
  if (!a.only.empty()) {
    j["only"] = only_json(a.only, a.notes);
    for (const std::string& note : b.notes) j["only"]["notes"].push_back(note);
  }
  return j.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace tprof::report
