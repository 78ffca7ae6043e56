#include "cli/peak_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "read/error.h"

namespace tprof::cli {
namespace {

std::optional<double> positive(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value > 0 && value < 1e6 ? std::optional(value) : std::nullopt;
}

}  // namespace

why::Peak peak_of(const std::string& text) {
  why::Peak peak;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const std::size_t equals = part.find('=');
    const std::string_view link = equals == std::string_view::npos ? "" : part.substr(0, equals);
    const auto value = positive(equals == std::string_view::npos ? part : part.substr(equals + 1));
    const bool known = link.empty() || link == "intra" || link == "inter";
    if (!value || !known) {
      throw read::BadInput(
          fmt::format("--peak: expected GB/s as nccl-tests' busbw, such as 400 or "
                      "intra=450,inter=50; found {}",
                      text));
    }
    if (link != "inter") peak.intra = *value;
    if (link != "intra") peak.inter = *value;
  }
  return peak;
}

}  // namespace tprof::cli
