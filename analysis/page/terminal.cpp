// The report as a screen of text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "diagnose/names.h"
#include "page/data.h"
#include "page/page.h"
#include "report/figures.h"
#include "report/findings.h"
#include "report/steps.h"
#include "report/verdict.h"
#include "report/words.h"

namespace tprof::page {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kBar = 30;
constexpr std::size_t kMostBuckets = 5;
constexpr std::size_t kMostLines = 4;  // of operations
constexpr std::size_t kMostUnseen = 3;
constexpr std::size_t kMostEvidence = 2;
constexpr std::size_t kUnseenHang = 16;  // behind its number
constexpr std::size_t kMostLateShown = 2;
constexpr std::size_t kMostName = 20;     // characters of a name
constexpr std::size_t kMostFindings = 2;  // beside the verdict

// Breaks text at blanks. A sentence is whole, unless a name in the trace makes it endless.
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

// "███▌": `share` of the bar's width, by eighths.
std::string bar(double share, std::size_t width = kBar) {
  static constexpr const char* kParts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double whole = std::clamp(share, 0.0, 1.0) * 8 * static_cast<double>(width);
  const auto eighths = static_cast<std::size_t>(std::llround(whole));
  std::string out;
  for (std::size_t i = 0; i < eighths / 8; ++i) out += "█";
  out += kParts[eighths % 8];
  return out.empty() && share > 0 ? "▏" : out;
}

std::string cut(const std::string& text, std::size_t most) {
  const std::string shown = text::printable(text);
  return shown.size() <= most ? shown : shown.substr(0, text::fitting(shown, most - 1)) + "~";
}

std::string ns(const Json& j) {
  return j.is_null() ? "-" : text::duration(j.get<std::uint64_t>());
}

std::string of(std::uint64_t some, std::uint64_t all) {
  return some == all ? text::thousands(all)
                     : fmt::format("{} of {}", text::thousands(some), text::thousands(all));
}

std::string step_lines(const Json& step) {
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
    out += wrapped("  " + without + "; what needs the steps of all ranks is not known", 2);
  }
  const Json& parts = step["parts"];
  if (parts.is_null()) {
    return out + wrapped("  computed, hidden, idle: " + step["parts_why"].get<std::string>(), 2);
  }
  // It is not known of some calls when the last rank came.
  static constexpr std::string_view kUnmet = "transfers or waiting";
  constexpr double kLeastUnmet = 0.0005;
  const auto part = [&](const char* key) { return parts[key].get<std::int64_t>(); };
  const std::pair<std::string_view, std::int64_t> rows[] = {
      {"computation alone", part("compute_ns") - part("hidden_ns")},
      {"hidden communication", part("hidden_ns")},
      {"exposed transfers", part("exposed_ns") - part("waiting_ns") - part("unmet_ns")},
      {"waiting for other ranks", part("waiting_ns")},
      {kUnmet, part("unmet_ns")},
      {"idle", part("idle_ns")}};
  for (const auto& [what, of_it] : rows) {
    const std::int64_t shown = std::max<std::int64_t>(of_it, 0);
    const double share = static_cast<double>(shown) / static_cast<double>(part("length_ns"));
    if (what == kUnmet && share < kLeastUnmet) continue;
    out += fmt::format("  {:<23} {:>10} {:>6.1f}% {}\n", what, diagnose::duration(shown),
                       100 * share, bar(share));
  }
  return out;
}

std::string bucket_lines(const Json& buckets) {
  std::vector<Json> rows(buckets.begin(), buckets.end());
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [](const Json& row) { return row["bytes"].get<std::uint64_t>(); });
  std::string out = "Bytes and calls\n";
  if (rows.empty()) return out + "  no call that counts\n";
  const auto most = rows[0]["bytes"].get<double>();
  for (std::size_t i = 0; i < std::min(rows.size(), kMostBuckets); ++i) {
    const Json& row = rows[i];
    const auto bytes = row["bytes"].get<std::uint64_t>();
    out += fmt::format("  {:<10} {:>11} {:>15} {:<5}  {}\n", row["bucket"].get<std::string>(),
                       text::bytes(bytes), text::thousands(row["calls"].get<std::uint64_t>()),
                       row["calls"] == 1 ? "call" : "calls",
                       bar(most == 0 ? 0 : static_cast<double>(bytes) / most));
  }
  if (rows.size() > kMostBuckets) {
    const std::size_t more = rows.size() - kMostBuckets;
    out += fmt::format("  and {} more {}\n", more, more == 1 ? "bucket" : "buckets");
  }
  return out;
}

std::string operation_lines(const Json& ops) {
  const bool timed =
      std::ranges::any_of(ops, [](const Json& o) { return !o["device_ns"].is_null(); });
  using enum text::Table::Align;
  text::Table table({{"operation", left},
                     {"size", left},
                     {"calls", right},
                     {"mean", right},
                     {"sum", right},
                     {"busbw GB/s", right}});
  for (std::size_t i = 0; i < std::min(ops.size(), kMostLines); ++i) {
    const Json& o = ops[i];
    const bool on_device = !o["device_ns"].is_null();
    const auto total = o[on_device ? "device_ns" : "host_ns"].get<std::uint64_t>();
    const auto n = o[on_device ? "device_timed" : "calls"].get<std::uint64_t>();
    table.row({cut(o["name"].get<std::string>(), kMostName), o["size"].get<std::string>(),
               text::thousands(o["calls"].get<std::uint64_t>()),
               text::duration(n == 0 ? 0 : total / n), text::duration(total),
               o["busbw"].is_null() ? "-" : fmt::format("{:.2f}", o["busbw"].get<double>())});
  }
  return fmt::format("Slowest operations, by their {} time\n", timed ? "device" : "host") +
         table.str(kWidth);
}

std::string late_lines(const Json& late) {
  if (late["compared"] == 0) {
    return "Who came late: not known, no collective has lines of several ranks to compare\n";
  }
  if (late["ranks"].empty()) return "Who came late: nobody, beyond what the clocks prove\n";
  std::string out = "Who came last";
  if (late["rooted"] != 0) {
    out += fmt::format(", not counting {} broadcasts and reduces",
                       text::thousands(late["rooted"].get<std::uint64_t>()));
  }
  out += "\n";
  for (std::size_t i = 0; i < std::min(late["ranks"].size(), kMostLateShown); ++i) {
    const Json& r = late["ranks"][i];
    out += fmt::format(
        "  {} on {}: last to {} of {}, by {} in all{}\n",
        cut(r["rank"].get<std::string>(), kMostName), cut(r["host"].get<std::string>(), kMostName),
        text::thousands(r["last"].get<std::uint64_t>()),
        text::thousands(r["of"].get<std::uint64_t>()), ns(r["sum_ns"]),
        r["sum_read_ns"] == 0 ? "" : fmt::format(", {} behind values", ns(r["sum_read_ns"])));
  }
  return out;
}

// Libraries that may move data come last: every PyTorch loads some.
std::string unseen_lines(std::vector<Unseen> all) {
  if (all.empty()) return "Not seen: nothing, as far as the files tell\n";
  std::stable_partition(all.begin(), all.end(),
                        [](const Unseen& u) { return !u.what.starts_with("may move data"); });
  std::string out = "Not seen\n";
  for (std::size_t i = 0; i < std::min(all.size(), kMostUnseen); ++i) {
    const Unseen& u = all[i];
    const std::string noun = u.noun.empty() ? "" : u.noun + (u.n == 1 ? " " : "s ");
    const std::string ranks = u.ranks.empty() ? "" : ", " + diagnose::names_of(u.ranks);
    const std::string line =
        fmt::format("  {:>13} {}{}{}{}", u.n == 0 ? "" : text::thousands(u.n), noun, u.what, ranks,
                    u.why.empty() ? "" : ": " + text::printable(u.why));
    out += wrapped(line, kUnseenHang);
  }
  if (all.size() > kMostUnseen) out += "  and more: on the page that -o writes\n";
  return out;
}

std::string text_of(const Json& finding, const char* key, const char* before,
                    std::size_t hang = 2) {
  return wrapped(before + text::printable(finding[key].get<std::string>()), hang);
}

// Tells what a finding rests on, in a line or two.
std::string evidence_of(const diagnose::Finding& finding) {
  std::string all;
  for (std::size_t i = 0; i < std::min(finding.evidence.size(), kMostEvidence); ++i) {
    all += wrapped("  " + text::printable(report::sentence(finding.evidence[i])), 2);
  }
  return all;
}

// Says why and what to do about the finding that the verdict tells, and the first of the others.
std::string finding_lines(const Gathered& g, std::optional<std::size_t> told, bool costly) {
  std::string next;
  std::string others;
  std::size_t shown = 0;
  std::size_t left = 0;
  for (std::size_t i = 0; i < g.said.findings.size(); ++i) {
    const diagnose::Finding& finding = g.said.findings[i];
    const bool end = report::notes_the_end(finding);
    if (i != told && costly && !finding.cost && !end) continue;
    if (i != told && shown == kMostFindings) {
      ++left;
      continue;
    }
    const Json f = report::to_json({finding}, report::Detail::brief)[0];
    if (i == told) {
      if (finding.cost) next = evidence_of(finding);  // `tprof check` tells that of the others
      if (!f["next"].is_null()) next += text_of(f, "next", "-> ");
    } else {
      ++shown;
      others += text_of(f, "text", (f["severity"].get<std::string>() + ": ").c_str());
      const bool some = !finding.ranks.empty() && finding.ranks.size() < g.said.job->ranks.size();
      if (end) others += evidence_of(finding);
      const bool advised = end || (finding.cost && some);
      if (advised && !f["next"].is_null()) others += text_of(f, "next", "  -> ", 5);
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
  const std::string only = only_text_of(g);
  return (only.empty() ? "" : wrapped(text::printable(only))) + verdict_lines(g, false) + "\n" +
         step_lines(step_of(g)) + "\n" + bucket_lines(buckets_of(g)) + "\n" +
         operation_lines(operations_of(g)) + "\n" + late_lines(late_of(g)) + "\n" +
         unseen_lines(unseen_by(g)) + "\nNext: " + text::printable(next) + "\n";
}

std::string verdict(const Gathered& g) {
  return verdict_lines(g, true);
}

std::string to_json(const Gathered& g) {
  return data_of(g).dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace tprof::page
