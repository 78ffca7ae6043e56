#include "interpose/marks/frame_program.h"

namespace tprof::native {
namespace {

constexpr std::uint8_t kBaseOfRegister = 0x70;  // DW_OP_breg0
constexpr std::uint8_t kDeref = 0x06;           // DW_OP_deref

Bytes block(Bytes& b) {
  const std::uint64_t size = b.number();
  const std::uint8_t* begin = b.at();
  b.skip(size);
  return {begin, b.at()};
}

}  // namespace

bool Program::run(Bytes b) {
  while (b.more() && at_ <= address_) {
    if (!instruction(b)) return false;
  }
  return true;
}

Place* Program::place_of(std::uint64_t reg) {
  if (reg == kFramePointer) return &state_.frame_pointer;
  return reg == kReturn ? &state_.return_address : nullptr;
}

void Program::set(std::uint64_t reg, Place place) {
  if (Place* p = place_of(reg)) *p = place;
}

void Program::set_at(std::uint64_t reg, std::int64_t units) {
  set(reg, {Place::Is::at, units * common_.data_unit});
}

void Program::restore(std::uint64_t reg) {
  if (reg == kFramePointer) state_.frame_pointer = initial_.frame_pointer;
  if (reg == kReturn) state_.return_address = initial_.return_address;
}

bool Program::end(std::uint64_t base, std::int64_t offset) {
  state_.base = base;
  state_.end = offset;
  state_.deref = false;
  return state_.end_known = true;
}

bool Program::advance(std::uint64_t units) {
  at_ += units * common_.code_unit;
  return true;
}

// Knows only what compilers write for a realigned stack: the word at an offset from the frame
// pointer.
void Program::end_by_expression(Bytes b) {
  state_.end_known = false;
  if (b.take<std::uint8_t>() != kBaseOfRegister + kFramePointer) return;
  const std::int64_t offset = b.signed_number();
  if (b.take<std::uint8_t>() != kDeref || b.more()) return;
  end(kFramePointer, offset);
  state_.deref = true;
}

void Program::set_by_expression(std::uint64_t reg, Bytes b) {
  const bool own = b.take<std::uint8_t>() == kBaseOfRegister + kFramePointer &&
                   b.signed_number() == 0 && !b.more() && reg == kFramePointer;
  set(reg, {own ? Place::Is::at_itself : Place::Is::unknown});
}

bool Program::instruction(Bytes& b) {
  const auto op = b.take<std::uint8_t>();
  const std::uint8_t low = op & 0x3f;
  switch (op & 0xc0) {
    case 0x40:
      return advance(low);
    case 0x80:
      set_at(low, static_cast<std::int64_t>(b.number()));
      return true;
    case 0xc0:
      restore(low);
      return true;
    default:
      return other(op, b);
  }
}

bool Program::other(std::uint8_t op, Bytes& b) {
  std::uint64_t reg = 0;
  switch (op) {
    case 0x00:  // nop
    case 0x2d:  // aarch64: the return address is signed from here on, or no longer
      return true;
    case 0x02:
      return advance(b.take<std::uint8_t>());
    case 0x03:
      return advance(b.take<std::uint16_t>());
    case 0x04:
      return advance(b.take<std::uint32_t>());
    case 0x05:  // offset_extended
      reg = b.number();
      set_at(reg, static_cast<std::int64_t>(b.number()));
      return true;
    case 0x06:
      restore(b.number());
      return true;
    case 0x07:
      set(b.number(), {Place::Is::undefined});
      return true;
    case 0x08:  // same_value
      set(b.number(), {Place::Is::kept});
      return true;
    case 0x09:  // register
    case 0x14:  // val_offset, and its signed form
    case 0x15:
      set(b.number(), {Place::Is::unknown});
      b.number();
      return true;
    case 0x0a:
      if (remembered_ == kRemembered) return false;
      memory_[remembered_++] = state_;
      return true;
    case 0x0b:
      if (remembered_ == 0) return false;
      state_ = memory_[--remembered_];
      return true;
    case 0x0c:  // def_cfa
      reg = b.number();
      return end(reg, static_cast<std::int64_t>(b.number()));
    case 0x0d:
      return end(b.number(), state_.end);
    case 0x0e:
      return end(state_.base, static_cast<std::int64_t>(b.number()));
    case 0x0f:
      end_by_expression(block(b));
      return true;
    case 0x10:
      reg = b.number();
      set_by_expression(reg, block(b));
      return true;
    case 0x11:
      reg = b.number();
      set_at(reg, b.signed_number());
      return true;
    case 0x12:
      reg = b.number();
      return end(reg, b.signed_number() * common_.data_unit);
    case 0x13:
      return end(state_.base, b.signed_number() * common_.data_unit);
    case 0x16:  // val_expression
      set(b.number(), {Place::Is::unknown});
      block(b);
      return true;
    case 0x2e:  // GNU_args_size
      b.number();
      return true;
    default:
      return false;
  }
}

}  // namespace tprof::native
