// The lines that say where in the program calls came from (tprof_site).
#pragma once

#include <simdjson.h>

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tprof::read {

struct SiteFrame {
  std::string function;
  std::string file;
  std::int64_t line = 0;

  auto operator<=>(const SiteFrame&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Frames of native code, one after the other in one object.
struct NativeFrames {
  std::string object;  // its path
  std::string build_id;
  std::vector<std::uint64_t> offsets{};
};

struct SiteLine {
  std::int64_t site = 0;  // its number
  std::string object;     // path; empty: not known
  std::uint64_t offset = 0;
  std::string symbol;
  std::vector<SiteFrame> frames{};  // Python's, innermost first
  std::vector<NativeFrames> native{};
  bool native_cut = false;  // there were more
};

// Takes at most 64 frames of a kind. Throws Malformed.
SiteLine parse_site_line(simdjson::dom::parser& parser, std::string_view line);

}  // namespace tprof::read
