#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "report/findings.h"
#include "report/report.h"
#include "report/steps.h"
#include "report/views.h"
#include "text/text.h"

namespace tprof::report {

std::string to_text(const stats::Summary& s, const TextOptions& options) {
  std::string out = header_text(s);
  const auto add = [&](Section section) { out += to_text(std::move(section)); };
  const auto add_all = [&](std::vector<Section> sections) {
    for (Section& section : sections) add(std::move(section));
  };
  const std::string over = how_many(s.job->processes);
  add(bucket_section(s,
                     s.only_steps
                         ? fmt::format("Totals of steps {} over {}{}", named(*s.only_steps), over,
                                       s.found.exact ? "" : ": calls that have lines")
                         : "Totals over " + over,
                     For::people));
  if (options.per_rank && !s.histogram) add(rank_section(s, For::people, std::nullopt));
  if (s.histogram) add_all(sections_of(*s.histogram, options.per_rank, For::people));
  // A histogram stands in place of the table that is shown when none is asked for.
  if (!s.histogram || options.by != By::size) {
    add_all(row_of(options.by).sections(s, For::people));
  }
  if (s.slowest) {
    add(section_of(*s.slowest, s.found, stats::sum(s.buckets).calls, For::people));
  }
  if (!s.comms.empty()) add(section_of(s.comms, For::people));
  if (!s.memory.uses.empty()) add(section_of(s.memory, For::people));
  std::string findings;
  for (const diagnose::Finding& f : s.findings) findings += to_text(f, Detail::brief);
  if (!findings.empty()) out += "\nFindings\n" + findings;
  if (!options.next.empty()) out += fmt::format("\nNext: {}\n", text::printable(options.next));
  return out;
}

}  // namespace tprof::report
