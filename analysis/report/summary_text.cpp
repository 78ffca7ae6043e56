#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "report/findings.h"
#include "report/report.h"
#include "report/views.h"
#include "text/text.h"

namespace tprof::report {

namespace {

constexpr std::size_t kMostBrief = 3;  // rows of a table

// Errors and warnings, or notes.
std::string findings(const stats::Summary& s, bool notes) {
  std::string out;
  for (const diagnose::Finding& f : s.findings) {
    if ((f.severity == diagnose::Severity::note) == notes) out += to_text(f, Detail::brief);
  }
  return out;
}

std::string title_of_totals(const stats::Summary& s) {
  const std::string over = how_many(s.job->processes);
  if (!s.only_steps) return "Totals over " + over;
  return fmt::format("Totals of steps {} over {}{}", named(*s.only_steps), over,
                     s.found.exact ? "" : ": calls that have lines");
}

Section brief(Section section) {
  section.room.rows = kMostBrief;
  section.room.all_with = "--verbose";
  section.notes.clear();
  return section;
}

std::string commands(const std::vector<std::string>& next) {
  std::string out;
  for (const std::string& command : next) {
    out += fmt::format("{}{}\n", out.empty() ? "\nNext: " : "      ", text::printable(command));
  }
  return out;
}

}  // namespace

std::string to_text(const stats::Summary& s, const TextOptions& options) {
  const bool first_screen = options.by == By::none && !options.verbose;
  std::string out = heading(s);
  if (options.verbose) out += details(s) + "\n";
  out += options.verdict + headline(s) + findings(s, false);
  const auto add = [&](Section section) {
    section.room.width = options.width;
    section.room.breaks = options.breaks;
    section.room.tells_columns = options.verbose;
    out += to_text(std::move(section));
  };
  const auto add_all = [&](std::vector<Section> sections) {
    for (Section& section : sections) add(std::move(section));
  };
  const bool any = stats::sum(s.buckets).calls != 0;
  if (any || s.only_steps) add(bucket_section(s, title_of_totals(s), For::people));
  if (options.per_rank && !s.histogram) add(rank_section(s, For::people, std::nullopt));
  if (s.histogram) add_all(sections_of(*s.histogram, options.per_rank, For::people));
  if (first_screen) {
    if (any && !s.histogram)
      add(brief(operation_section(s, "Largest operations", {.size = true}, For::people, true)));
    // A histogram stands in place of the table that is shown when none is asked for.
  } else if (!s.histogram || options.by > By::size) {
    add_all(row_of(options.by).sections(s, For::people));
  }
  if (s.slowest) {
    add(section_of(*s.slowest, s.found, stats::sum(s.buckets).calls, For::people));
  }
  if (!first_screen && !s.comms.empty()) add(section_of(s.comms, For::people));
  if (first_screen && s.comms.size() > 1) add(brief(section_of(s.comms, For::people)));
  if (!s.memory.uses.empty()) add(section_of(s.memory, For::people));
  const std::string notes = findings(s, true);
  if (!notes.empty()) out += "\n" + notes;
  return out + commands(options.next);
}

}  // namespace tprof::report
