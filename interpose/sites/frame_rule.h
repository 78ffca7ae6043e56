// How to get from a place in the code to the one that called it: by the tables that compilers write
// for exceptions (.eh_frame).
#pragma once

#include <cstdint>

namespace tprof::native {

// Of a place: where the frame ends, and where the return address and the caller's frame pointer lie
// from there, in words. As a whole one word, so that it is read and written at once.
struct Rule {
  enum class End : std::uint8_t {
    unknown,
    outermost,  // nothing called it
    stack,      // of the frame: `end` behind the stack pointer
    frame,      // behind the frame pointer
    saved       // what lies `end` behind the frame pointer points to it (a realigned stack)
  };
  End from = End::unknown;
  bool saves_return = false;  // else it is in its register
  std::int16_t return_at = 0;
  std::int16_t frame_at = kKept;
  std::int16_t end = 0;

  static constexpr std::int16_t kKept = INT16_MAX;      // it is still in its register
  static constexpr std::int16_t kAtItself = INT16_MIN;  // the frame pointer points to it
  friend bool operator==(const Rule&, const Rule&) = default;
};
static_assert(sizeof(Rule) == sizeof(std::uint64_t));

// Of the instruction at `address`. Goes through the loaded objects: takes the loader's lock for
// that list, which no constructor is run with.
Rule rule_at(std::uintptr_t address);

// The same by the tables of one object: `index` is its .eh_frame_hdr.
Rule rule_in(const std::uint8_t* index, std::uintptr_t address);

}  // namespace tprof::native
