// Runs the programs that tell where a caller's registers are, for each place in a function (DWARF
// 5, section 6.4.2). It follows two registers only: the frame pointer and the one that the return
// address comes in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/marks/frame_bytes.h"

namespace tprof::native {

// Register numbers, as DWARF has them.
#if defined(__x86_64__)
inline constexpr std::uint64_t kFramePointer = 6, kStackPointer = 7, kReturn = 16;
#else
inline constexpr std::uint64_t kFramePointer = 29, kStackPointer = 31, kReturn = 30;
#endif

// Where one of the caller's registers is.
struct Place {
  enum class Is : std::uint8_t { kept, at, at_itself, undefined, unknown } is = Is::kept;
  std::int64_t offset = 0;  // from the end of the frame
};

struct State {
  std::uint64_t base = kStackPointer;
  std::int64_t end = 0;
  bool deref = false;
  bool end_known = true;
  Place frame_pointer;
  Place return_address;
};

// The part that the descriptions of several functions have in common.
struct Common {
  std::uint64_t code_unit = 1;
  std::int64_t data_unit = 1;
  std::uint8_t encoding = 0;
  bool has_sizes = false;  // augmentation data comes with its size
  Bytes program{nullptr, nullptr};
};

class Program {
 public:
  Program(const Common& common, std::uintptr_t begin, std::uintptr_t address)
      : common_(common), at_(begin), address_(address) {}

  // False: the program can't be followed.
  bool run(Bytes b);
  void begins_here() { initial_ = state_; }
  const State& state() const { return state_; }

 private:
  static constexpr std::size_t kRemembered = 8;

  Place* place_of(std::uint64_t reg);
  void set(std::uint64_t reg, Place place);
  void set_at(std::uint64_t reg, std::int64_t units);
  void restore(std::uint64_t reg);
  bool end(std::uint64_t base, std::int64_t offset);
  bool advance(std::uint64_t units);
  void end_by_expression(Bytes b);
  void set_by_expression(std::uint64_t reg, Bytes b);
  bool instruction(Bytes& b);
  bool other(std::uint8_t op, Bytes& b);

  const Common& common_;
  std::uintptr_t at_;
  std::uintptr_t address_;
  State state_;
  State initial_;
  State memory_[kRemembered];
  std::size_t remembered_ = 0;
};

}  // namespace tprof::native
