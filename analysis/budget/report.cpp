#include "budget/budget.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "report/findings.h"
#include "report/table.h"
#include "text/text.h"

namespace tprof::budget {
namespace {

using report::Column;
using report::Json;
using report::Unit;

constexpr std::size_t kMostRows = 100;

std::string number(double n) {
  return n == std::floor(n) ? text::thousands(static_cast<std::uint64_t>(n))
                            : fmt::format("{:.2f}", n);
}

std::string range(const Range& r, std::string (*show)(double)) {
  if (std::isinf(r.most)) return r.least == 0 ? "any" : show(r.least) + " or more";
  if (r.least == r.most || show(r.least) == show(r.most)) return show(r.most);
  return r.least == 0 ? "<= " + show(r.most) : show(r.least) + " to " + show(r.most);
}

std::string difference(const Row& row) {
  const Range& r = row.bytes;
  if (!row.has_limit && row.within) return "";
  if (r.holds(row.moved.bytes)) return "";
  return row.moved.bytes > r.most ? "+" + bytes_text(row.moved.bytes - r.most)
                                  : "-" + bytes_text(r.least - row.moved.bytes);
}

Json exact(double n) {
  if (std::isinf(n)) return {};
  return n == std::floor(n) ? Json(std::llround(n)) : Json(n);
}

Json exact(const Row& row, const Range& r) {
  if (!row.has_limit && row.within) return {};
  return {{"min", exact(r.least)}, {"max", exact(r.most)}};
}

Json json_of(const Members& members) {
  Json all = members.numbers.list();
  for (const std::string& name : members.others) all.push_back(name);
  return all;
}

std::string verdict(const Row& row) {
  if (row.within) return "";
  const bool more = row.moved.bytes > row.bytes.most ||
                    (row.bytes.holds(row.moved.bytes) && row.moved.calls > row.limit.calls.most);
  return more ? "over" : "under";
}

std::vector<Column<Row>> columns(bool several) {
  const auto expected = [](const Row& r, const Range& limit, std::string (*show)(double)) {
    return !r.has_limit && r.within ? std::string("-") : range(limit, show);
  };
  return {
      {several ? "ranks" : nullptr, nullptr, Unit::text,
       [](const Row& r) { return r.ranks.list(); }, report::Show::label},
      {nullptr, "ranks", Unit::text, [](const Row& r) { return json_of(r.ranks); }},
      {"bucket", "bucket", Unit::text,
       [](const Row& r) { return std::string(bucket_name(r.limit.bucket)); }},
      {"dtype", nullptr, Unit::text,
       [](const Row& r) { return fmt::format("{}", fmt::join(r.dtypes, " ")); },
       report::Show::if_room},
      {"function", "function", Unit::name,
       [](const Row& r) { return report::or_unknown(r.limit.function); }, report::Show::if_room},
      {nullptr, "dtypes", Unit::text, [](const Row& r) { return Json(r.dtypes); }},
      {"calls", nullptr, Unit::right_text, [](const Row& r) { return number(r.moved.calls); }},
      {"expected", nullptr, Unit::right_text,
       [=](const Row& r) { return expected(r, r.limit.calls, number); }},
      {"bytes", nullptr, Unit::right_text, [](const Row& r) { return bytes_text(r.moved.bytes); }},
      {"expected", nullptr, Unit::right_text,
       [=](const Row& r) { return expected(r, r.bytes, bytes_text); }},
      {"difference", nullptr, Unit::right_text, [](const Row& r) { return difference(r); },
       report::Show::last_to_go},
      {"", nullptr, Unit::text, [](const Row& r) { return verdict(r); }, report::Show::if_any},
      {nullptr, "calls", Unit::number, [](const Row& r) { return exact(r.moved.calls); }},
      {nullptr, "bytes", Unit::number, [](const Row& r) { return exact(r.moved.bytes); }},
      {nullptr, "elements", Unit::number, [](const Row& r) { return exact(r.moved.elements); }},
      {nullptr, "calls_per_step", Unit::text, [](const Row& r) { return exact(r, r.limit.calls); }},
      {nullptr, "bytes_per_step", Unit::text, [](const Row& r) { return exact(r, r.bytes); }},
      {nullptr, "within", Unit::text, [](const Row& r) { return Json(r.within); }},
  };
}

const char* from(const Measured& m) {
  return m.from == Measured::From::step_lines ? "step lines"
         : m.from == Measured::From::lines    ? "event lines"
                                              : "ledgers";
}

// One sentence for all ranks with the same number.
std::string apart(const std::vector<Small>& small, bool several) {
  std::map<Members, std::string> lists;
  for (const Small& s : small) {
    std::string& list = lists[s.ranks];
    list += fmt::format("{}{} in {}", list.empty() ? "" : ", ", number(s.moved.calls),
                        bucket_name(s.bucket));
  }
  std::map<std::string, Members> by_list;
  for (const auto& [ranks, list] : lists) by_list[list].add(ranks);
  std::string out;
  std::size_t said = 0;
  std::size_t others = 0;
  for (const auto& [list, ranks] : by_list) {
    if (++said > kMostRows) {
      others += ranks.size();
      continue;
    }
    out += fmt::format("Small calls (norms, losses, barriers) are counted separately{}: {}.\n",
                       several ? ", on " + text::printable(ranks.list()) : "", list);
  }
  if (others == 0) return out;
  return out + fmt::format("{} other {} have small calls too.\n", text::thousands(others),
                           others == 1 ? "rank" : "ranks");
}

std::string capital(const std::string& text) {
  std::string s = text::printable(text);
  if (s[0] >= 'a' && s[0] <= 'z') s[0] = static_cast<char>(s[0] - 'a' + 'A');
  return s;
}

std::string sentence(const std::string& text) {
  const std::string s = capital(text);
  return s.ends_with('?') ? s + "\n" : s + ".\n";
}

std::string verdict(const Compared& c) {
  if (!c.within) return "Not within the budget.\n";
  const std::size_t n = c.unlike_steps;
  const std::string within = n == 0 ? "Within the budget" : "The usual step is within the budget";
  const std::string more =
      n == 0
          ? ""
          : fmt::format("{} other {} more{}: {}.\n", text::thousands(n),
                        n == 1 ? "step makes" : "steps make",
                        c.other_steps[0].in_run.empty() ? "" : ", unlike any in the budget's run",
                        text::printable(c.unlike_text));
  if (c.if_steps == 0) return within + (more.empty() ? ".\n" : "; " + more);
  return fmt::format(
      "{}, if the {} repeats are steps and not micro-batches: give the number of steps with "
      "--steps N to be sure.\n{}",
      within, text::thousands(c.if_steps), more);
}

Json json_of(const std::vector<OtherSteps>& others) {
  Json all = Json::array();
  for (const OtherSteps& o : others) {
    all.push_back({{"steps", o.steps},
                   {"bucket", bucket_name(o.kind.bucket)},
                   {"function", o.kind.name},
                   {"dtype", o.kind.dtype},
                   {"calls", exact(o.more.calls)},
                   {"bytes", exact(o.more.bytes)},
                   {"in_run", report::or_null(o.in_run)}});
  }
  return all;
}

}  // namespace

std::string to_text(const Measured& m, const Compared& c, std::size_t width) {
  const bool several = m.groups.size() > 1;
  Members ranks;  // without ranks whose files can't be read or have no step
  for (const Group& group : m.groups) ranks.add(group.ranks);
  std::string out = report::only_text(c.only, {}, "filter: ");
  out += fmt::format(
      "{} in a step{}, the {} of {}{} ({}):\n\n",
      ranks.size() == 1 ? capital(ranks.names()) : "Each of " + text::printable(ranks.names()),
      m.may_be_micro_batches ? ", or a micro-batch of one" : "",
      m.usual && m.steps > 1 ? "usual one" : "mean", text::thousands(m.steps),
      m.may_be_micro_batches ? ""
      : m.steps == 1         ? " step"
                             : " steps",
      from(m));
  out += report::table_text(columns(several), c.rows,
                            {.width = width,
                             .breaks = true,
                             .rows = kMostRows,
                             .names = " rows",
                             .tells_columns = true}) +
         "\n";
  out += apart(c.small, several);
  for (const std::string& note : c.notes) out += sentence(note);
  for (const std::string& said : c.sentences) out += sentence(said);
  return out + verdict(c);
}

std::string to_json(const job::Job& job, const Measured& m, const Compared& c) {
  Json small = Json::array();
  for (const Small& s : c.small) {
    small.push_back({{"ranks", json_of(s.ranks)},
                     {"bucket", bucket_name(s.bucket)},
                     {"calls", s.moved.calls},
                     {"bytes", s.moved.bytes},
                     {"most_calls", s.most ? exact(*s.most) : Json()}});
  }
  Json all = {{"schema", "tprof-budget-report/1"},
              {"run_id", report::or_null(job.run_id)},
              {"ranks", job.ranks},
              {"within", c.within},
              {"may_be_micro_batches", m.may_be_micro_batches},
              {"from", from(m)},
              {"steps", m.steps},
              {"rows", report::table_json(columns(false), c.rows)},
              {"small", small},
              {"other_steps", json_of(c.other_steps)},
              {"explained_by", c.sentences},
              {"notes", c.notes}};
  if (!c.only.sentence().empty()) all["only"] = report::only_json(c.only, {});
  return report::printed(all, 2);
}

}  // namespace tprof::budget
