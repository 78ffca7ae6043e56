// The report as one HTML file: the page's own files, the library of charts and the data.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>

#include "page/data.h"
#include "page/page.h"
#include "text/text.h"

namespace tprof::page {

// The files, which CMake puts here (page_files.cpp.in).
extern const std::string_view kHtml;
extern const std::string_view kStyle;
extern const std::string_view kScript;
extern const std::string_view kCharts;

namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// Within a script no name of a trace may end it, or begin a comment.
std::string in_script(const std::string& json) {
  std::string out;
  out.reserve(json.size() + json.size() / 64);
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string to_html(const Gathered& g) {
  const std::string data =
      in_script(data_of(g).dump(-1, ' ', true, Json::error_handler_t::replace));
  const report::JobVerdict verdict = report::verdict_of(g.said, known_of(g));
  const std::string text = escaped(text::printable(verdict.text));
  const std::string only = escaped(text::printable(only_text_of(g)));
  // Scripts run only with this, whatever gets into the page.
  const std::string nonce = fmt::format("{:016x}", std::hash<std::string>{}(data));
  const std::array<std::pair<std::string_view, std::string_view>, 8> parts = {{
      {"{{style}}", kStyle},
      {"{{charts}}", kCharts},
      {"{{script}}", kScript},
      {"{{data}}", data},
      {"{{nonce}}", nonce},
      {"{{severity}}", verdict.severity},
      {"{{verdict}}", text},
      {"{{only}}", only},
  }};
  std::string out;
  out.reserve(kStyle.size() + kCharts.size() + kScript.size() + kHtml.size() + data.size() + 1024);
  std::string_view rest = kHtml;
  while (!rest.empty()) {
    const std::size_t at = rest.find("{{");
    out += rest.substr(0, at);
    if (at == std::string_view::npos) break;
    rest.remove_prefix(at);
    const auto part =
        std::ranges::find_if(parts, [&](const auto& p) { return rest.starts_with(p.first); });
    if (part == parts.end()) {
      out += "{{";
      rest.remove_prefix(2);
      continue;
    }
    out += part->second;
    rest.remove_prefix(part->first.size());
  }
  return out;
}

}  // namespace tprof::page
