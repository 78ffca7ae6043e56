// Tells how to get from a place in the code to its caller, by the tables that compilers write for
// exceptions (.eh_frame).
#pragma once

#include <cstdint>

namespace tprof::native {

// For a place in the code: where its frame ends, and where the return address and the caller's
// frame pointer lie from there, in words. A rule is one machine word, so that it is read and
// written at once.
struct Rule {
  enum class End : std::uint8_t {
    unknown,
    outermost,  // nothing called this place
    stack,      // the frame ends `end` words from the stack pointer
    frame,      // the frame ends `end` words from the frame pointer
    saved       // the word there points to the frame's end (a realigned stack)
  };
  End from = End::unknown;
  bool saves_return = false;  // false: the return address is in its register
  std::int16_t return_at = 0;
  std::int16_t frame_at = kKept;
  std::int16_t end = 0;

  static constexpr std::int16_t kKept = INT16_MAX;      // it is still in its register
  static constexpr std::int16_t kAtItself = INT16_MIN;  // the frame pointer points to it
  friend bool operator==(const Rule&, const Rule&) = default;
};
static_assert(sizeof(Rule) == sizeof(std::uint64_t));

// Returns the rule of the instruction at `address`. It goes through the loaded objects, which takes
// the loader's lock of that list; no constructor is run under that lock.
Rule rule_at(std::uintptr_t address);

// Does the same with the tables of one object: `index` is its .eh_frame_hdr.
Rule rule_in(const std::uint8_t* index, std::uintptr_t address);

}  // namespace tprof::native
