#include "interpose/calls/copy_call.h"

namespace tprof {
namespace {

// Returns the kind of host memory of a copy between host and device. Wrapped allocations are known
// at no cost, and fast copies use them. Other memory may be pageable, or pinned by a linked-in CUDA
// runtime or the driver's functions, so the driver is asked, with one cuPointerGetAttributes per
// call. This creates no context, does not change the runtime's last error, and costs little
// compared with a copy of pageable memory. It is not asked for captured calls, nor if it just
// returned the direction (cudaMemcpyDefault).
HostMemory host_memory_of(Bucket bucket, const CopyArgs& a, bool captured) {
  const void* host = bucket == Bucket::H2D ? a.src : bucket == Bucket::D2H ? a.dst : nullptr;
  if (host == nullptr) return HostMemory::unknown;
  const HostMemory kind = memory::kind_of(host);
  if (kind != HostMemory::unknown || captured) [[likely]]
    return kind;
  return driver::host_memory(host);
}

}  // namespace

driver::Direction direction_of(const CopyArgs& a, bool captured) {
  if (is_named(a.kind)) [[likely]] {
    const Bucket bucket = kDirections[a.kind];
    return {bucket, host_memory_of(bucket, a, captured)};
  }
  driver::Direction asked = driver::direction(a.dst, a.src);
  if (asked.host == HostMemory::unknown) asked.host = host_memory_of(asked.bucket, a, true);
  return asked;
}

namespace {

bool wants_line(Bucket bucket) {
  return kBuckets[static_cast<std::size_t>(bucket)].lines ||
         session::config().events == EventLines::all;
}

}  // namespace

void open_copy(Thread& t, OpenCall& call, std::uint8_t function, const OneCopy& copy,
               bool captured) {
  Record& r = call.open(t, wants_line(copy.bucket));
  r.txn = 0;
  set_outcome(r, 0, 0);
  r.count = copy.bytes;
  r.stream = reinterpret_cast<std::uintptr_t>(copy.stream);
  r.seq = 0;
  r.peer = kNoPeer;
  r.group = 0;
  set_comm(r, static_cast<std::uint32_t>(t.device) + 1);
  r.bucket = copy.bucket;
  r.dtype = kDtypeByte;
  set_flags(r, captured, false, copy.sync, copy.host, Reduce::none);
  call.in.key =
      key_words(function, copy.bucket, kDtypeByte, captured ? Mode::captured : Mode::direct,
                bytes_class(copy.bytes), r.comm, 0, copy.host);
  call.in.row = expect_row(t, call.in.key);
}

[[gnu::flatten]] void begin_copy(Thread& t, OpenCall& call, std::uint8_t function,
                                 const CopyArgs& a) {
  call.enter(t, false);
  const bool captured = call.is_captured(t, a.stream);
  const auto [bucket, host] = direction_of(a, captured);
  open_copy(t, call, function, {bucket, host, a.bytes, a.stream, a.sync}, captured);
  call.start(t, function);
}

}  // namespace tprof
