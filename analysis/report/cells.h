// Columns and cells that several tables share.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "read/process.h"
#include "text/text.h"

namespace tprof::report {

using Columns = std::vector<std::pair<std::string, text::Table::Align>>;

// `align` has l or r for each name.
inline Columns columns(std::string_view align, const std::vector<const char*>& names) {
  using Align = text::Table::Align;
  Columns all;
  for (const char* name : names)
    all.emplace_back(name, align[all.size()] == 'l' ? Align::left : Align::right);
  return all;
}

inline std::string ratio(std::uint64_t part, std::uint64_t all) {
  return all == 0
             ? "-"
             : fmt::format("{:.1f}%", 100 * static_cast<double>(part) / static_cast<double>(all));
}

// Returns the exposed time, and its share of the device time of those calls for which it is known.
inline std::string exposed(const read::Amounts& a) {
  return a.exposure_known == 0 ? "-"
                               : fmt::format("{} ({})", text::duration(a.exposed_ns),
                                             ratio(a.exposed_ns, a.exposure_known_ns));
}

inline std::string mean_host(const read::Amounts& a) {
  return a.calls == a.replayed ? "-" : text::duration(a.host_ns / (a.calls - a.replayed));
}
// Shows "-" for 0, since the longest call may be of an earlier epoch.
inline std::string longest(std::uint64_t ns) {
  return ns == 0 ? "-" : text::duration(ns);
}

}  // namespace tprof::report
