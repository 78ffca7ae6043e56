// The report as a screen of text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "check/names.h"
#include "page/data.h"
#include "report/findings.h"
#include "report/verdict.h"
#include "report/views.h"
#include "report/words.h"

namespace tprof::page {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kBar = 30;
constexpr std::size_t kBucketsShown = 4;
constexpr std::size_t kOperationsShown = 3;
constexpr std::size_t kLateRanksShown = 2;
constexpr std::size_t kMostUnseen = 3;
constexpr std::size_t kMostEvidence = 2;
constexpr std::size_t kMostName = 16;     // characters
constexpr std::size_t kMostFindings = 2;  // besides the verdict

// Breaks text at blanks. Sentences are complete, unless a name in the trace makes them endless.
std::string wrapped(const std::string& text, std::size_t hang = 0) {
  constexpr std::size_t kEndless = 8;
  constexpr std::string_view kCut = " … (tprof report --json has the rest)";
  constexpr std::size_t kCutWidth = kCut.size() - 2;  // columns
  std::string out;
  std::string_view left = text;
  for (std::size_t line = 1; !left.empty(); ++line) {
    if (line > 1) out.append(hang, ' ');
    const std::size_t room = kWidth - (line > 1 ? hang : 0);
    const bool cut = line == kEndless && text::fitting(left, room) < left.size();
    const std::size_t n = text::first_line(left, cut ? room - kCutWidth : room);
    out += left.substr(0, n);
    if (cut) return out.append(kCut) + "\n";
    out += "\n";
    left.remove_prefix(std::min(left.find_first_not_of(' ', n), left.size()));
  }
  return out;
}

// "███▌": `share` of the bar's width, in eighths.
std::string bar(double share, std::size_t width = kBar) {
  static constexpr const char* kParts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double whole = std::clamp(share, 0.0, 1.0) * 8 * static_cast<double>(width);
  const auto eighths = static_cast<std::size_t>(std::llround(whole));
  std::string out;
  for (std::size_t i = 0; i < eighths / 8; ++i) out += "█";
  out += kParts[eighths % 8];
  return out.empty() && share > 0 ? "▏" : out;
}

std::string ns(const Json& j) {
  return j.is_null() ? "-" : text::duration(j.get<std::uint64_t>());
}

std::string of(std::uint64_t some, std::uint64_t all) {
  return some == all ? text::thousands(all)
                     : fmt::format("{} of {}", text::thousands(some), text::thousands(all));
}

std::string step_lines(const Gathered& g) {
  const Json step = step_of(g);
  if (step["steps"] == 0) {
    return wrapped("Step: no steps are known: " + step["why"].get<std::string>() + ".") +
           fmt::format("-> {}\n", report::kMarkThem);
  }
  const auto ranks = step["of_ranks"].get<std::string>();
  const bool one = ranks.find_first_not_of("0123456789") == std::string::npos;
  const std::string of_which = ranks.empty() ? "" : (one ? " of rank " : " of ranks ") + ranks;
  std::string out =
      fmt::format("Step{}: {} on average ({} to {}, {} {}{}{})",
                  step["whole"] == true ? "" : ", or micro-batch of one", ns(step["mean_ns"]),
                  ns(step["least_ns"]), ns(step["most_ns"]),
                  of(step["counted"].get<std::uint64_t>(), step["steps"].get<std::uint64_t>()),
                  step["steps"] == 1 ? "step" : "steps", of_which,
                  step["parts"].is_null() ? ", on the hosts" : "");
  if (!step["exposed_share"].is_null()) {
    out += fmt::format(", {:.1f}% of it exposed", 100 * step["exposed_share"].get<double>());
  }
  out = wrapped(out, 2);
  if (const auto without = step["without"].get<std::string>(); !without.empty()) {
    out += wrapped("  " + without + "; anything that needs the steps of all ranks is unknown", 2);
  }
  if (step["parts"].is_null()) {
    return out + wrapped("  computed, hidden, idle: " + step["parts_why"].get<std::string>(), 2);
  }
  for (const PartOfStep& part : parts_of(g)) {
    const double share = static_cast<double>(part.ns) / step["mean_ns"].get<double>();
    out += fmt::format("  {:<23} {:>10} {:>6.1f}% {}\n", part.name, check::duration(part.ns),
                       100 * share, bar(share));
  }
  if (step["causes_why"].is_null()) return out;
  return out + wrapped("  causes: not known: " + step["causes_why"].get<std::string>(), 2);
}

// The first rows of a table of the page.
std::string first_rows(Section section, std::size_t rows) {
  if (section.table.rows.size() > rows) section.table.rows.resize(rows);
  for (std::vector<report::Value>& row : section.table.rows) {
    for (report::Value& value : row) {
      auto* text = std::get_if<std::string>(&value.is);
      if (text != nullptr) *text = report::cut(*text, kMostName);
    }
  }
  section.room = {.width = kWidth, .breaks = true};
  section.notes.clear();
  return to_text(std::move(section));
}

std::string unseen_lines(const std::vector<Unseen>& all) {
  if (all.empty()) return "Not seen: nothing, according to the files\n";
  std::string out = "Not seen\n";
  for (std::size_t i = 0; i < std::min(all.size(), kMostUnseen); ++i) {
    out += wrapped("  " + text::printable(all[i].what), 4);
  }
  if (all.size() > kMostUnseen) out += "  and more: on the page that -o writes\n";
  return out;
}

std::string line_of(const std::string& before, const std::string& text, std::size_t hang = 2) {
  return text.empty() ? "" : wrapped(before + text::printable(text), hang);
}

// Returns the evidence of a finding in a line or two.
std::string evidence_of(const check::Finding& finding) {
  std::string all;
  for (std::size_t i = 0; i < std::min(finding.evidence.size(), kMostEvidence); ++i) {
    all += line_of("  ", report::sentence(finding.evidence[i]));
  }
  return all;
}

// Returns evidence and advice for the verdict's finding, and the first of the others.
std::string finding_lines(const Gathered& g, std::optional<std::size_t> told, bool costly) {
  std::string next;
  std::string others;
  std::size_t shown = 0;
  std::size_t left = 0;
  for (std::size_t i = 0; i < g.said.findings.size(); ++i) {
    const check::Finding& f = g.said.findings[i];
    const bool end = report::notes_the_end(f);
    if (i == told) {
      if (f.cost) next = evidence_of(f);  // `tprof check` shows the others' evidence
      next += line_of("-> ", report::next_of(f));
      continue;
    }
    if (costly && !f.cost && !end) continue;
    // Notes of what was not seen stand below.
    if (!costly && f.severity == check::Severity::note && tells_unseen(f.kind)) continue;
    if (shown == kMostFindings) {
      ++left;
    } else {
      ++shown;
      others += line_of(std::string(f.severity_name()) + ": ", report::sentence(f.text));
      const bool some = !f.ranks.empty() && f.ranks.size() < g.said.job->ranks.size();
      if (end) others += evidence_of(f);
      if (end || (f.cost && some)) others += line_of("  -> ", report::next_of(f), 5);
    }
  }
  if (left != 0) {
    others += fmt::format("and {} more {}: on the page{}\n", left,
                          left == 1 ? "finding" : "findings", costly ? "" : " that -o writes");
  }
  return next + others;
}

std::string verdict_lines(const Gathered& g, bool costly) {
  const report::JobVerdict verdict = report::verdict_of(g.said, known_of(g));
  return wrapped(verdict.text) + finding_lines(g, verdict.finding, costly);
}

}  // namespace

std::string to_text(const Gathered& g, const std::string& next) {
  // Replays tell who holds up the others: the last to come may itself have waited for a rank.
  const bool replayed = g.why.known() && g.why.no_causes.empty();
  const std::string only = only_text_of(g);
  return (only.empty() ? "" : wrapped(text::printable(only))) + verdict_lines(g, false) + "\n" +
         step_lines(g) + first_rows(buckets_of(g, For::people), kBucketsShown) +
         first_rows(operations_of(g, For::people), kOperationsShown) +
         (replayed ? "" : first_rows(late_of(g, For::people), kLateRanksShown)) + "\n" +
         unseen_lines(unseen_by(g)) + "\nNext: " + text::printable(next) + "\n";
}

std::string verdict(const Gathered& g) {
  return verdict_lines(g, true);
}

std::string to_json(const Gathered& g) {
  return report::printed(data_of(g), -1);
}

}  // namespace tprof::page
