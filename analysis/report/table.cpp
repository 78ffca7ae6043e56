#include "report/table.h"

#include <algorithm>

namespace tprof::report {

std::string text_of(const Value& value, Unit unit) {
  if (std::holds_alternative<Unknown>(value)) return "-";
  if (const auto* text = std::get_if<std::string>(&value)) return text::printable(*text);
  if (const auto* share = std::get_if<Share>(&value)) {
    if (share->whole <= 0) return "-";
    const double part = static_cast<double>(share->part) / static_cast<double>(share->whole);
    return fmt::format("{:.1f}%", 100 * part);
  }
  const auto* negative = std::get_if<std::int64_t>(&value);
  if (unit == Unit::number && negative != nullptr) return std::to_string(*negative);
  const std::uint64_t n = negative == nullptr
                              ? std::get<std::uint64_t>(value)
                              : static_cast<std::uint64_t>(std::max<std::int64_t>(*negative, 0));
  if (unit == Unit::number) return std::to_string(n);
  if (unit == Unit::count) return text::thousands(n);
  return unit == Unit::ns_not_0 && n == 0 ? "-" : text::duration(n);
}

Json json_of(const Value& value) {
  if (const auto* n = std::get_if<std::int64_t>(&value)) return *n;
  if (const auto* n = std::get_if<std::uint64_t>(&value)) return *n;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* share = std::get_if<Share>(&value)) return share->part;
  return nullptr;
}

}  // namespace tprof::report
