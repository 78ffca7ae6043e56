// Copies between addresses and symbols, and the kinds of memory that they use.
#include "copies.h"

#include "../per_thread_copies.h"

extern "C" void __cudaRegisterVar(void** module, char* host, char* device, const char* name,
                                  int external, size_t size, int constant, int global);

namespace {

constexpr std::size_t kSymbol = 4096;
char symbol;

void register_symbol() {
  [[maybe_unused]] static const bool once = [] {
    __cudaRegisterVar(nullptr, &symbol, nullptr, "symbol", 0, kSymbol, 0, 0);
    return true;
  }();
}

// Replaces the scratch memory with another kind, often at the same address.
void renew(Dice& d, Rank& r) {
  synchronize(r);  // it may be in use
  switch (r.scratch_kind) {
    case Rank::Scratch::device:
    case Rank::Scratch::managed:
      OK(cudaFree(r.scratch));
      break;
    case Rank::Scratch::pinned:
      OK(cudaFreeHost(r.scratch));
      break;
    case Rank::Scratch::registered:
      OK(cudaHostUnregister(r.scratch));
      [[fallthrough]];
    case Rank::Scratch::pageable:
      delete[] r.scratch;
  }
  void* memory = nullptr;
  r.scratch_kind = static_cast<Rank::Scratch>(d.below(5));
  switch (r.scratch_kind) {
    case Rank::Scratch::device:
      OK(cudaMalloc(&memory, kRegion));
      break;
    case Rank::Scratch::managed:
      OK(cudaMallocManaged(&memory, kRegion, cudaMemAttachGlobal));
      break;
    case Rank::Scratch::pinned:
      OK(d.chance(50) ? cudaHostAlloc(&memory, kRegion, cudaHostAllocDefault)
                      : cudaMallocHost(&memory, kRegion));
      break;
    case Rank::Scratch::registered:
      memory = new char[kRegion];
      OK(cudaHostRegister(memory, kRegion, cudaHostRegisterDefault));
      break;
    case Rank::Scratch::pageable:
      memory = new char[kRegion];
  }
  r.scratch = static_cast<char*>(memory);
}

// Replaces a stream with another, often under the same handle.
void renew_stream(Dice& d, Rank& r) {
  synchronize(r);
  OK(cudaStreamDestroy(r.streams[1]));
  OK(cudaStreamCreateWithPriority(&r.streams[1], cudaStreamNonBlocking, d.chance(50) ? -1 : 0));
}

// Copies by cudaMemcpyDefault: only the place of the scratch memory tells the direction.
void scratch_copy(Dice& d, const Rank& r) {
  const Ends e = draw_ends(d, r);
  const bool to = d.chance(50);
  EITHER(d, cudaMemcpy, cudaMemcpy_ptds, to ? r.scratch : e.to, to ? e.from : r.scratch,
         d.size(kRegion), cudaMemcpyDefault);
}

void symbol_copy(Dice& d, const Rank& r) {
  register_symbol();
  const Ends e = draw_ends(d, r);
  const std::size_t bytes = d.size(kSymbol / 2), offset = d.below(kSymbol / 2);
  const bool to = d.chance(50), from_device = e.device != nullptr;
  cudaMemcpyKind kind = from_device ? cudaMemcpyDeviceToDevice
                        : to        ? cudaMemcpyHostToDevice
                                    : cudaMemcpyDeviceToHost;
  char* other = from_device ? e.device : e.to;
  cudaStream_t stream = draw_stream(d, r);
  const bool waits = d.chance(50);
  if (to && waits) {
    EITHER(d, cudaMemcpyToSymbol, cudaMemcpyToSymbol_ptds, &symbol, other, bytes, offset, kind);
  } else if (to) {
    EITHER(d, cudaMemcpyToSymbolAsync, cudaMemcpyToSymbolAsync_ptsz, &symbol, other, bytes, offset,
           kind, stream);
  } else if (waits) {
    EITHER(d, cudaMemcpyFromSymbol, cudaMemcpyFromSymbol_ptds, other, &symbol, bytes, offset, kind);
  } else {
    EITHER(d, cudaMemcpyFromSymbolAsync, cudaMemcpyFromSymbolAsync_ptsz, other, &symbol, bytes,
           offset, kind, stream);
  }
}

}  // namespace

Ends draw_ends(Dice& d, const Rank& r, bool pinned) {
  char* device = (d.chance(85) ? r.memory : r.managed) + d.below(kRegion);
  char* other_device = (d.chance(85) ? r.memory : r.managed) + d.below(kRegion);
  char* const hosts[] = {r.pinned, r.pinned, r.pageable, r.managed};
  char* host = hosts[d.below(pinned ? 2 : 4)] + d.below(kRegion);
  char* other_host = hosts[d.below(pinned ? 2 : 4)] + d.below(kRegion);
  Ends e{};
  switch (d.below(8)) {
    case 0:
      e = {host, other_host, cudaMemcpyHostToHost, nullptr};
      break;
    case 1:
    case 2:
      e = {device, other_device, cudaMemcpyDeviceToDevice, device};
      break;
    case 3:
    case 4:
      e = {host, device, cudaMemcpyDeviceToHost, device};
      break;
    default:
      e = {device, host, cudaMemcpyHostToDevice, device};
  }
  if (d.chance(30)) e.kind = cudaMemcpyDefault;
  return e;
}

cudaStream_t draw_stream(Dice& d, const Rank& r) {
  const cudaStream_t streams[] = {r.streams[0], r.streams[1],     r.streams[2],
                                  nullptr,      cudaStreamLegacy, cudaStreamPerThread};
  return d.one_of(streams);
}

void line_copy(Dice& d, const Rank& r) {
  const Ends e = draw_ends(d, r);
  const std::size_t bytes = d.size(kRegion);
  if (d.chance(15)) return symbol_copy(d, r);
  if (d.chance(15)) return scratch_copy(d, r);
  if (d.chance(40)) {
    EITHER(d, cudaMemcpy, cudaMemcpy_ptds, e.to, e.from, bytes, e.kind);
    return;
  }
  EITHER(d, cudaMemcpyAsync, cudaMemcpyAsync_ptsz, e.to, e.from, bytes, e.kind, draw_stream(d, r));
}

void asynchronous_copy(Dice& d, const Rank& r, cudaStream_t stream) {
  const Ends e = draw_ends(d, r, true);
  const std::size_t bytes = d.size(kRegion), width = d.size(200), height = d.size(20);
  switch (d.below(5)) {
    case 0:
      OK(CALL(cudaMemcpy2DAsync)(e.to, 256, e.from, 256, width, height, e.kind, stream));
      return;
    case 1:
      OK(CALL(cudaMemcpyPeerAsync)(r.memory, r.device, r.memory + kRegion, r.device, bytes,
                                   stream));
      return;
    case 2: {
      register_symbol();
      OK(CALL(cudaMemcpyToSymbolAsync)(&symbol, r.pinned, width, 0, cudaMemcpyHostToDevice,
                                       stream));
      return;
    }
    default:
      EITHER(d, cudaMemcpyAsync, cudaMemcpyAsync_ptsz, e.to, e.from, bytes, e.kind, stream);
  }
}

void refused_copy(Dice& d, const Rank& r) {
  const Ends e = draw_ends(d, r);
  const std::size_t bytes = 1 + d.size(1000);
  cudaError_t result = cudaSuccess;
  switch (d.below(4)) {
    case 0:
      result = CALL(cudaMemcpy)(nullptr, e.from, bytes, cudaMemcpyHostToDevice);
      break;
    case 1:
      result = CALL(cudaMemcpyAsync)(e.to, nullptr, bytes, cudaMemcpyDeviceToHost, r.streams[0]);
      break;
    case 2:
      result = CALL(cudaMemcpy)(e.to, e.from, bytes, static_cast<cudaMemcpyKind>(77));
      break;
    default:
      result = CALL(cudaMemcpy2D)(e.to, bytes - 1, e.from, bytes, bytes, 2, e.kind);
  }
  MUST(result != cudaSuccess);
  MUST(cudaGetLastError() == result);
}

void copy_turn(Player& p, Dice& d, Rank& r) {
  // A copy counts for the device that the thread has set, whatever the stream's device is.
  OK(CALL(cudaSetDevice)(d.chance(90) ? r.device : static_cast<int>(d.below(kOtherDevices))));
  if (p.o.refused != 0 && d.chance(5)) return refused_copy(d, r);
  if (p.o.driver != 0 && d.chance(15)) return driver_copy(d, r);
  if (d.chance(8)) return renew(d, r);
  if (d.chance(3)) return renew_stream(d, r);
  switch (d.below(5)) {
    case 0:
      return box_copy(d, r);
    case 1:
      return batch_copy(d, r);
    case 2:
      return asynchronous_copy(d, r, draw_stream(d, r));
    default:
      return line_copy(d, r);
  }
}
