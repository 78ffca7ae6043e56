// Call sites: the places in the program that make calls. The mapped file has a table entry for
// each, and its calls' records have the entry's number.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tprof {

inline constexpr std::uint32_t kMaxSiteFrames = 40;    // Python frames looked at
inline constexpr std::uint32_t kMaxNativeFrames = 24;  // native frames kept

// A library or program in which frames of calls lie.
struct SiteObject {
  char path[471];  // empty: not known
  std::uint8_t build_id_size;
  std::uint8_t build_id[40];
};
static_assert(sizeof(SiteObject) == 512);

// A return address: a number in the table of objects (0: not known), and the offset from the
// object's start in memory.
struct SiteAddress {
  static constexpr unsigned kOffsetBits = 48;

  std::uint64_t packed;

  std::uint32_t object() const { return static_cast<std::uint32_t>(packed >> kOffsetBits); }
  std::uint64_t offset() const { return packed & ((std::uint64_t{1} << kOffsetBits) - 1); }
};
constexpr SiteAddress site_address(std::uint32_t object, std::uint64_t offset) {
  return {std::uint64_t{object} << SiteAddress::kOffsetBits | offset};
}

// Texts end with a NUL or with their field.
struct Site {
  std::uint64_t key;                    // equal for equal sites of this process
  SiteAddress caller;                   // no object: not asked for, or not known
  std::uint16_t frames;                 // native ones
  bool frames_cut;                      // there were more, or the last one's caller is not known
  SiteAddress frame[kMaxNativeFrames];  // innermost first
  char symbol[256];                     // the exported symbol before the caller's address, mangled
  // Innermost first: function, file and line, each ended by kSiteField, then kSiteFrame. Frames
  // that don't fit are left out.
  char python[3624];
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
