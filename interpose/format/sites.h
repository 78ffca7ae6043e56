// Places in the program that calls come from, as they lie in the mapped file: a table entry for
// each, and its number in the records of its calls.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tprof {

inline constexpr std::uint32_t kMaxSiteFrames = 40;  // Python frames that are looked at

// Texts end with a NUL or with their field.
struct Site {
  std::uint64_t key;     // equal for equal sites of this process
  std::uint64_t offset;  // of the return address, from where its object begins
  char object[240];  // path of the object that made the call; empty: not asked for, or not known
  char symbol[256];  // the exported one before the return address, as the linker has it
  // Innermost first: function, file and line, each ended by kSiteField, and kSiteFrame behind them.
  // Frames that find no room are left out.
  char python[3584];
};
inline constexpr char kSiteField = '\x1f';
inline constexpr char kSiteFrame = '\x1e';
static_assert(sizeof(Site) == 4096 && std::is_trivially_copyable_v<Site>);

// TPROF_CALLSITE.
enum class CallSite : std::uint8_t { off, native, python, both };

constexpr bool parse_call_site(std::string_view v, CallSite& what) {
  what = v == "native"   ? CallSite::native
         : v == "python" ? CallSite::python
         : v == "both"   ? CallSite::both
                         : CallSite::off;
  return what != CallSite::off || v == "off";
}

}  // namespace tprof
