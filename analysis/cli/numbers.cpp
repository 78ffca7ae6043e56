#include "cli/numbers.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

namespace tprof::cli {
namespace {

// A limit that nobody comes near is told only where it was passed.
std::string expected(const Numbers& n, double found) {
  constexpr double kLarge = 1e6;
  const char* what = n.of == kWhole     ? "a whole number"
                     : n.of == kSeconds ? "a number of seconds"
                                        : "a number";
  std::string limits;
  if (n.most < kLarge || (n.most != kNoMost && n.most < found)) {
    limits = fmt::format(" from {:.10g} to {:.10g}", n.least, n.most);
  } else {
    limits = n.least == kAboveZero ? " above 0" : fmt::format(" of {:.10g} or more", n.least);
  }
  return fmt::format("{}{}, such as {}", what, limits, n.example);
}

// Reads it as CLI11 does afterwards.
template <typename Number>
std::string wrong(const Numbers& numbers, const std::string& text) {
  Number n{};
  const bool is_number = CLI::detail::lexical_cast(text, n);
  const auto value = static_cast<double>(n);
  if (is_number && numbers.least <= value && value <= numbers.most) return "";  // no NaN either
  return fmt::format("expected {}; found '{}'", expected(numbers, is_number ? value : 0), text);
}

}  // namespace

void take(CLI::Option* option, const Numbers& numbers) {
  const auto check = [numbers](const std::string& text) {
    return numbers.of == kWhole ? wrong<std::int64_t>(numbers, text) : wrong<double>(numbers, text);
  };
  option->check(check, "");
}

}  // namespace tprof::cli
