#include "interpose/marks/frame_description.h"

#include <cstring>

#include "interpose/marks/frame_program.h"

namespace tprof::native {
namespace {

// Returns the entry without its length. It is empty for the 64-bit kind, which nobody writes here.
Bytes body(const std::uint8_t* entry) {
  std::uint32_t size = 0;
  std::memcpy(&size, entry, sizeof size);
  const std::uint8_t* at = entry + sizeof size;
  return {at, size == UINT32_MAX ? at : at + size};
}

bool read_common(const std::uint8_t* entry, Common& c) {
  Bytes b = body(entry);
  if (b.take<std::uint32_t>() != 0) return false;
  const auto version = b.take<std::uint8_t>();
  const auto* words = reinterpret_cast<const char*>(b.at());
  while (b.take<char>() != '\0') {
  }
  c.code_unit = b.number();
  c.data_unit = b.signed_number();
  if ((version == 1 ? b.take<std::uint8_t>() : b.number()) != kReturn) return false;
  c.has_sizes = *words == 'z';
  if (c.has_sizes) b.number(), ++words;
  for (; *words != '\0'; ++words) {
    std::uintptr_t ignored = 0;
    if (*words == 'R') {
      c.encoding = b.take<std::uint8_t>();
    } else if (*words == 'L') {
      b.skip(1);
    } else if (*words == 'P') {
      const auto encoding = b.take<std::uint8_t>();
      if (!b.address(encoding & 0x8f, ignored)) return false;
    } else if (*words != 'B') {
      return false;  // 'S', a signal handler's caller: the code it interrupted made no call
    }
  }
  c.program = b;
  return version == 1 || version == 3;
}

constexpr std::int64_t kWord = sizeof(void*);

bool in_words(std::int64_t bytes, std::int16_t& words) {
  const std::int64_t n = bytes / kWord;
  words = static_cast<std::int16_t>(n);
  return bytes % kWord == 0 && n > INT16_MIN && n < INT16_MAX;
}

bool place(const Place& p, std::int16_t& words) {
  if (p.is == Place::Is::at) return in_words(p.offset, words);
  if (p.is == Place::Is::at_itself) words = Rule::kAtItself;
  return p.is != Place::Is::unknown;
}

Rule rule_of(const State& s) {
  using Is = Place::Is;
  const Place& back = s.return_address;
  Rule rule;
  if (back.is == Is::undefined) {
    rule.from = Rule::End::outermost;
    return rule;
  }
  rule.saves_return = back.is == Is::at;
  const bool base_known = s.base == kFramePointer || s.base == kStackPointer;
  if (!s.end_known || !base_known || !in_words(s.end, rule.end)) return {};
  if (!place(back, rule.return_at) || !place(s.frame_pointer, rule.frame_at)) return {};
  rule.from = s.deref                   ? Rule::End::saved
              : s.base == kStackPointer ? Rule::End::stack
                                        : Rule::End::frame;
  return rule;
}

}  // namespace

Rule rule_of_description(const std::uint8_t* description, std::uintptr_t address) {
  Bytes b = body(description);
  const std::uint8_t* from = b.at();
  Common common;
  if (!read_common(from - b.take<std::uint32_t>(), common)) return {};
  std::uintptr_t begin = 0;
  std::uintptr_t size = 0;
  if (!b.address(common.encoding, begin) || !b.address(common.encoding & 0x0f, size)) return {};
  if (address - begin >= size) return {};
  if (common.has_sizes) b.skip(b.number());
  // The common instructions hold for every address of the function.
  Program program(common, begin, address);
  if (!program.run(common.program)) return {};
  program.begins_here();
  if (!program.run(b)) return {};
  return rule_of(program.state());
}

}  // namespace tprof::native
