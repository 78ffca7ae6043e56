// Reads the tables that compilers write for debuggers and unwinders, in which numbers have no fixed
// size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tprof::native {

// Reading beyond the end gives 0.
class Bytes {
 public:
  Bytes(const std::uint8_t* at, const std::uint8_t* end) : at_(at), end_(end) {}

  bool more() const { return at_ < end_; }
  const std::uint8_t* at() const { return at_; }
  void skip(std::uint64_t n) { at_ = n < static_cast<std::uint64_t>(end_ - at_) ? at_ + n : end_; }
  template <typename T>
  T take() {
    T value{};
    if (static_cast<std::size_t>(end_ - at_) < sizeof value) return at_ = end_, value;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; more(); shift += 7) {
      const std::uint8_t byte = *at_++;
      if (shift < 64) value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80) == 0) break;
    }
    return value;
  }
  std::int64_t signed_number() {
    const std::uint8_t* begin = at_;
    std::uint64_t value = number();
    const auto bits = static_cast<unsigned>(7 * (at_ - begin));
    const bool negative = at_ != begin && (at_[-1] & 0x40) != 0;
    if (negative && bits < 64) value |= ~std::uint64_t{0} << bits;
    return static_cast<std::int64_t>(value);
  }
  // Reads an address by its encoding (DW_EH_PE_...). False: no linker writes this encoding here.
  bool address(std::uint8_t encoding, std::uintptr_t& value) {
    const auto here = reinterpret_cast<std::uintptr_t>(at_);
    switch (encoding & 0x0f) {
      case 0x00:
      case 0x04:
      case 0x0c:
        value = take<std::uint64_t>();
        break;
      case 0x03:
        value = take<std::uint32_t>();
        break;
      case 0x0b:
        value = static_cast<std::uintptr_t>(std::int64_t{take<std::int32_t>()});
        break;
      default:
        return false;
    }
    if ((encoding & 0x70) == 0x10) value += here;
    return (encoding & 0x60) == 0;
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

}  // namespace tprof::native
