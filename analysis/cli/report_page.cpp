// tprof report: a screen of text, or a page.

#include <fstream>

#include "cli/commands.h"
#include "cli/input.h"
#include "cli/peak_option.h"
#include "cli/report_page.h"
#include "cli/screen.h"
#include "export/output.h"
#include "page/page.h"
#include "read/error.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::cli {
namespace {

constexpr std::string_view kOurs = "<!doctype html><!-- tprof report -->";

bool is_page(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string begin(kOurs.size(), '\0');
  in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return in && begin == kOurs;
}

}  // namespace

void write_page(const std::string& page, const fs::path& to) {
  if (to == "-") {
    text::put(page);
    return;
  }
  trace_export::Output out(to, false, [](const fs::path& there) {
    if (is_page(there)) return;
    throw read::BadInput(there, "is there, and is no page of tprof report: give another name");
  });
  out.put(page);
  out.close();
}

int report_of(const Options& o) {
  if (o.json && !o.output.empty()) {
    throw read::BadInput("expected one of --json and -o FILE.html");
  }
  const why::Peak peak = peak_of(o.peak);
  trace_export::remove_unfinished_on_signals();
  const filter::Filter only = filter::parsed(o.only);
  read::Traces traces = load(o.paths, o.team);
  const job::Job job = job::one_job(traces, o.choice);
  filter::with_ranks(job, only.words.ranks);
  page::Gathered g;
  g.why.peak = peak;
  const run::Lines lines = lines_of(job, traces);
  page::gather(lines, g);
  const filter::Selection asked(lines, only, {});
  if (!only.words.empty()) page::gather_calls(asked, g);
  if (!o.output.empty()) {
    if (!o.team || o.team->rank() == 0) {
      const std::string page = page::to_html(g);
      write_page(page, o.output);
      if (o.output != "-") {
        text::say("{}: {}; open it in a browser\n", text::printable(o.output.string()),
                  text::bytes(page.size()));
      }
    }
  } else if (o.json) {
    text::put(page::to_json(g));
  } else {
    const std::string next =
        "tprof report " + quoted(o.paths) + typed(o.choice) + " -o report.html";
    show(page::to_text(g, next));
  }
  return diagnose::healthy(g.said.findings) ? kOk : kFinding;
}

}  // namespace tprof::cli
