// Counts the calls of this process, in code that shares nothing with interpose/. Every "difference
// 0" in the tests compares with these counts. They are in a mapped file, so that a SIGKILL loses
// nothing.
#pragma once

#include <atomic>
#include <cstdint>

namespace standin::tally {

enum class Mode : uint8_t { kDirect, kCaptured, kReplayed };

// Codes 0-11 are ncclDataType_t's; a copy moves bytes.
constexpr uint8_t kByte = 255;
constexpr uint8_t kNoDevice = 255;

// The direction of a copy, cudaMemcpyKind's values; kNone for NCCL calls.
enum class Kind : uint8_t { kH2H, kH2D, kD2H, kD2D, kManaged, kNone = 255 };

// The kind of host memory in a copy between host and device. kNone: no such copy, or a batch of
// several kinds.
enum class Memory : uint8_t { kNone, kPinned, kManaged, kPageable };

struct Key {
  const char* function;  // a literal: compared by address
  uint8_t dtype = kByte;
  Kind kind = Kind::kNone;
  Mode mode = Mode::kDirect;
  Memory memory = Memory::kNone;
  int32_t comm = 0;            // ordinal of the communicator, 0: none
  uint8_t device = kNoDevice;  // the calling thread's current one; copies only

  bool operator==(const Key&) const = default;
};

struct Row;

// Increments `entered` in the calling thread's row for `key`, and returns the row. Returns null
// without STANDIN_TALLY.
Row* enter(const Key& key);
void returned(Row* row, uint64_t count, uint64_t bytes);
void failed(Row* row);

// Notes a communicator and returns its ordinal: from 1, in order of creation in this process.
int32_t communicator(uint64_t id, int nranks, int rank, int device, const char* name);

}  // namespace standin::tally
