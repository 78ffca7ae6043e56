#include "engine/copy.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "engine/capture.h"
#include "engine/device.h"
#include "engine/memory.h"
#include "engine/model.h"

namespace standin {
namespace {

// Below this a pageable source is staged and the call returns; above it the call waits, as the
// "API synchronization behavior" page of the CUDA runtime says.
constexpr size_t kStaged = 64 << 10;

bool valid(cudaMemcpyKind kind) {
  return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

// An invalid kind, which will be refused, gets the direction of its pointers.
tally::Kind direction(cudaMemcpyKind kind, const void* dst, const void* src) {
  if (valid(kind) && kind != cudaMemcpyDefault) return static_cast<tally::Kind>(kind);
  const cudaMemoryType to = memory_type(dst), from = memory_type(src);
  if (to == cudaMemoryTypeManaged || from == cudaMemoryTypeManaged) return tally::Kind::kManaged;
  const bool to_device = to == cudaMemoryTypeDevice, from_device = from == cudaMemoryTypeDevice;
  return static_cast<tally::Kind>((from_device ? 2 : 0) + (to_device ? 1 : 0));
}

tally::Memory host_side(tally::Kind kind, const Region& r) {
  const void* host = kind == tally::Kind::kH2D   ? r.src
                     : kind == tally::Kind::kD2H ? r.dst
                                                 : nullptr;
  if (!host) return tally::Memory::kNone;
  switch (memory_type(host)) {
    case cudaMemoryTypeUnregistered:
      return tally::Memory::kPageable;
    case cudaMemoryTypeHost:
      return tally::Memory::kPinned;
    case cudaMemoryTypeManaged:
      return tally::Memory::kManaged;
    default:
      return tally::Memory::kNone;
  }
}

tally::Key key_of(const char* function, tally::Kind kind, tally::Mode mode, tally::Memory memory) {
  return {.function = function,
          .kind = kind,
          .mode = mode,
          .memory = memory,
          .device = static_cast<uint8_t>(current_device())};
}

tally::Key key_of(const char* function, const Region& region, cudaMemcpyKind kind,
                  tally::Mode mode) {
  const tally::Kind way = direction(kind, region.dst, region.src);
  return key_of(function, way, mode, host_side(way, region));
}

void move(const Region& r) {
  for (size_t z = 0; z < r.depth; ++z) {
    for (size_t y = 0; y < r.height; ++y) {
      std::memmove(static_cast<char*>(r.dst) + z * r.dst_slice + y * r.dst_pitch,
                   static_cast<const char*>(r.src) + z * r.src_slice + y * r.src_pitch, r.width);
    }
  }
}

cudaError_t check(const Region& r, cudaMemcpyKind kind) {
  if (!valid(kind)) return cudaErrorInvalidMemcpyDirection;
  if (r.bytes() > 0 && (!r.dst || !r.src)) return cudaErrorInvalidValue;
  if (r.height > 1 && (r.dst_pitch < r.width || r.src_pitch < r.width)) {
    return cudaErrorInvalidPitchValue;
  }
  return cudaSuccess;
}

bool pageable(const void* pointer) {
  return memory_type(pointer) == cudaMemoryTypeUnregistered;
}

cudaError_t run(const Region& r) {
  move(r);
  return cudaSuccess;
}

cudaError_t never() {
  hang();
}

cudaError_t copy_op(const char* function, const Region& region, cudaMemcpyKind kind, Op* op) {
  if (const cudaError_t error = check(region, kind)) return error;
  const tally::Key key = key_of(function, region, kind, tally::Mode::kReplayed);
  op->run = [region] { return run(region); };
  op->takes = transfer_time(region.bytes(), process_rank());
  op->type = cudaGraphNodeTypeMemcpy;
  op->counted = {{key, region.bytes(), region.bytes()}};
  op->copied = region;
  op->kind = kind;
  return cudaSuccess;
}

}  // namespace

cudaError_t place_copy(const char* function, const Region& region, cudaMemcpyKind kind,
                       const std::function<cudaError_t(Op)>& put) {
  tally::Row* row = tally::enter(key_of(function, region, kind, tally::Mode::kCaptured));
  meet_fault(function, process_rank());
  Op op;
  cudaError_t error = copy_op(function, region, kind, &op);
  if (error == cudaSuccess) error = put(std::move(op));
  if (error == cudaSuccess) {
    tally::returned(row, region.bytes(), region.bytes());
  } else {
    tally::failed(row);
  }
  return error;
}

cudaError_t copy(const char* function, const Region& region, cudaMemcpyKind kind,
                 cudaStream_t handle, Wait wait) {
  const StreamRef stream = find_stream(handle);
  const bool capturing = stream && stream->capture;
  tally::Row* row = tally::enter(
      key_of(function, region, kind, capturing ? tally::Mode::kCaptured : tally::Mode::kDirect));
  const auto fail = [row](cudaError_t error) {
    tally::failed(row);
    return error;
  };
  const Outcome fault = meet_fault(function, process_rank());
  if (!stream) return fail(cudaErrorInvalidResourceHandle);
  use_context(stream->device);
  if (wait == Wait::kYes) {
    if (const cudaError_t error = check_not_capturing(stream.get())) return fail(error);
  }
  Op op;
  if (const cudaError_t error = copy_op(function, region, kind, &op)) return fail(error);
  if (fault.hang_device) op.run = never;
  if (!capturing) {
    const bool from_pageable = pageable(region.src), to_pageable = pageable(region.dst);
    if (to_pageable || (from_pageable && region.bytes() > kStaged)) {
      wait = Wait::kYes;
    } else if (from_pageable && wait == Wait::kNo && !fault.hang_device) {
      // The caller may reuse its memory at once.
      auto staged = std::make_shared<std::vector<char>>(region.bytes());
      Region in = region, out = region;
      in.dst = staged->data();
      out.src = staged->data();
      in.dst_pitch = out.src_pitch = region.width;
      in.dst_slice = out.src_slice = region.width * region.height;
      move(in);
      op.run = [out, staged] { return run(out); };
    }
  }
  const Mark mark = submit(*stream, std::move(op));
  if (wait == Wait::kYes && mark) mark->wait();
  tally::returned(row, region.bytes(), region.bytes());
  return device_error();
}

cudaError_t copy_batch(const char* function, const std::vector<Region>& regions,
                       cudaStream_t handle) {
  const StreamRef stream = find_stream(handle);
  std::map<tally::Kind, uint64_t> bytes;
  std::map<tally::Kind, tally::Memory> memory;
  for (const Region& r : regions) {
    const tally::Kind kind = direction(cudaMemcpyDefault, r.dst, r.src);
    bytes[kind] += r.bytes();
    tally::Memory& all = memory.try_emplace(kind, host_side(kind, r)).first->second;
    if (all != host_side(kind, r)) all = tally::Memory::kNone;
  }
  std::map<tally::Kind, tally::Row*> rows;
  for (const auto& [kind, sum] : bytes) {
    rows[kind] = tally::enter(key_of(function, kind, tally::Mode::kDirect, memory[kind]));
  }
  const Outcome fault = meet_fault(function, process_rank());
  cudaError_t error = cudaSuccess;
  // The real one refuses both (cudaMemcpyBatchAsync: not on the legacy stream, not captured).
  if (!stream || !handle || handle == cudaStreamLegacy) error = cudaErrorInvalidValue;
  if (stream && stream->capture) error = cudaErrorStreamCaptureUnsupported;
  for (const Region& r : regions) {
    if (error == cudaSuccess) error = check(r, cudaMemcpyDefault);
  }
  if (error != cudaSuccess) {
    for (const auto& [kind, row] : rows) tally::failed(row);
    return error;
  }
  std::chrono::nanoseconds takes{};
  for (const Region& r : regions) takes += transfer_time(r.bytes(), process_rank());
  const Mark mark = submit(*stream, {.run =
                                         [regions, hung = fault.hang_device] {
                                           if (hung) hang();
                                           for (const Region& r : regions) run(r);
                                           return cudaSuccess;
                                         },
                                     .takes = takes,
                                     .type = cudaGraphNodeTypeMemcpy});
  const bool any_pageable = std::any_of(regions.begin(), regions.end(), [](const Region& r) {
    return pageable(r.src) || pageable(r.dst);
  });
  if (any_pageable) mark->wait();
  for (const auto& [kind, row] : rows) tally::returned(row, bytes[kind], bytes[kind]);
  return device_error();
}

cudaError_t fill(const Region& r, unsigned value, size_t value_size, cudaStream_t handle,
                 Wait wait) {
  const StreamRef stream = find_stream(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!r.dst && r.bytes() > 0) return cudaErrorInvalidValue;
  use_context(stream->device);
  if (wait == Wait::kYes) {
    if (const cudaError_t error = check_not_capturing(stream.get())) return error;
  }
  const auto run_fill = [=] {
    for (size_t z = 0; z < r.depth; ++z) {
      for (size_t y = 0; y < r.height; ++y) {
        char* line = static_cast<char*>(r.dst) + z * r.dst_slice + y * r.dst_pitch;
        if (value_size == 1) {
          std::memset(line, static_cast<int>(value), r.width);
        } else {
          for (size_t x = 0; x < r.width; x += value_size)
            std::memcpy(line + x, &value, value_size);
        }
      }
    }
    return cudaSuccess;
  };
  const Mark mark = submit(*stream, {.run = run_fill, .type = cudaGraphNodeTypeMemset});
  if (wait == Wait::kYes && mark) mark->wait();
  return device_error();
}

}  // namespace standin
