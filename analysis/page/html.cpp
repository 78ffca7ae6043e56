// The report as one HTML file: the page's own files, the chart library and the data.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

#include "page/data.h"
#include "text/text.h"

namespace tprof::page {

// The files, embedded by CMake (page_files.cpp.in).
extern const std::string_view kHtml;
extern const std::string_view kStyle;
extern const std::string_view kScript;
extern const std::string_view kCharts;

namespace {

using Replacement = std::pair<std::string_view, std::string_view>;

std::string replaced(std::string_view text, std::span<const Replacement> all) {
  std::string out;
  out.reserve(text.size() + text.size() / 64);
  for (; !text.empty(); text.remove_prefix(1)) {
    const auto found =
        std::ranges::find_if(all, [&](const auto& r) { return text.starts_with(r.first); });
    if (found == all.end()) {
      out += text[0];
    } else {
      out += found->second;
      text.remove_prefix(found->first.size() - 1);
    }
  }
  return out;
}

std::string escaped(const std::string& text) {
  constexpr Replacement kAll[] = {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}};
  return replaced(text::printable(text), kAll);
}

}  // namespace

std::string to_html(const Gathered& g) {
  // A name from a trace must not end a script or begin a comment.
  constexpr Replacement kInScript[] = {{"<", "\\u003c"}};
  const std::string data =
      replaced(data_of(g).dump(-1, ' ', true, Json::error_handler_t::replace), kInScript);
  const report::JobVerdict verdict = report::verdict_of(g.said, known_of(g));
  const std::string text = escaped(verdict.text);
  const std::string only = escaped(only_text_of(g));
  // Only scripts with this nonce run, whatever gets into the page.
  const std::string nonce = fmt::format("{:016x}", std::hash<std::string>{}(data));
  const Replacement parts[] = {
      {"{{style}}", kStyle}, {"{{charts}}", kCharts}, {"{{script}}", kScript},
      {"{{data}}", data},    {"{{nonce}}", nonce},    {"{{severity}}", verdict.severity},
      {"{{verdict}}", text}, {"{{only}}", only},
  };
  return replaced(kHtml, parts);
}

}  // namespace tprof::page
