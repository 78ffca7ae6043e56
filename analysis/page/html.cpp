// The report as one HTML file: the page's own files, the chart library and the data.
#include <fmt/format.h>

#include <functional>
#include <string_view>

#include "page/data.h"
#include "text/text.h"

namespace tprof::page {

// The files, embedded by CMake (page_files.cpp.in).
extern const std::string_view kHtml;
extern const std::string_view kStyle;
extern const std::string_view kScript;
extern const std::string_view kCharts;

namespace {

std::string escaped(const std::string& text) {
  return text::replaced(text::printable(text), {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

}  // namespace

std::string to_html(const Gathered& g) {
  // A name from a trace must not end a script or begin a comment.
  const std::string data = text::replaced(
      data_of(g).dump(-1, ' ', true, Json::error_handler_t::replace), {{"<", "\\u003c"}});
  const report::JobVerdict verdict = report::verdict_of(g.said, known_of(g));
  const std::string text = escaped(verdict.text);
  const std::string only = escaped(only_text_of(g));
  // Only scripts with this nonce run, whatever gets into the page.
  const std::string nonce = fmt::format("{:016x}", std::hash<std::string>{}(data));
  return text::replaced(kHtml, {{"{{style}}", kStyle},
                                {"{{charts}}", kCharts},
                                {"{{script}}", kScript},
                                {"{{data}}", data},
                                {"{{nonce}}", nonce},
                                {"{{severity}}", verdict.severity},
                                {"{{verdict}}", text},
                                {"{{only}}", only}});
}

}  // namespace tprof::page
