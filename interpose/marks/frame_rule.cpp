#include "interpose/marks/frame_rule.h"

#include <cstring>

#include "interpose/base/loaded_objects.h"
#include "interpose/marks/frame_description.h"

namespace tprof::native {
namespace {

// .eh_frame_hdr as all linkers write it: version, encodings, then the number of entries and a
// sorted table of (code, description), each 32 bits from the beginning of this section.
constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kCount32 = 0x03;
constexpr std::uint8_t kFromHere32 = 0x1b;
constexpr std::uint8_t kFromIndex32 = 0x3b;

struct Entry {
  std::int32_t code;
  std::int32_t description;
};

Entry entry(const std::uint8_t* index, std::uint32_t i) {
  Entry e;
  std::memcpy(&e, index + 12 + i * sizeof e, sizeof e);
  return e;
}

}  // namespace

Rule rule_in(const std::uint8_t* index, std::uintptr_t address) {
  if (index[0] != kVersion || index[1] != kFromHere32 || index[2] != kCount32 ||
      index[3] != kFromIndex32) {
    return {};
  }
  std::uint32_t count = 0;
  std::memcpy(&count, index + 8, sizeof count);
  const auto from_index =
      static_cast<std::int64_t>(address - reinterpret_cast<std::uintptr_t>(index));
  std::uint32_t begin = 0;  // the last entry at or before the address
  for (std::uint32_t end = count; end - begin > 1;) {
    const std::uint32_t middle = begin + (end - begin) / 2;
    (entry(index, middle).code <= from_index ? begin : end) = middle;
  }
  if (count == 0 || entry(index, begin).code > from_index) return {};
  return rule_of_description(index + entry(index, begin).description, address);
}

Rule rule_at(std::uintptr_t address) {
  Rule rule;
  each_loaded_object([&](const dl_phdr_info& object) {
    if (!holds(object, address)) return false;
    for (const auto& segment : std::span(object.dlpi_phdr, object.dlpi_phnum)) {
      if (segment.p_type != PT_GNU_EH_FRAME) continue;
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader tells addresses as numbers
      const auto* index = reinterpret_cast<const std::uint8_t*>(object.dlpi_addr + segment.p_vaddr);
      rule = rule_in(index, address);
    }
    return true;
  });
  return rule;
}

}  // namespace tprof::native
