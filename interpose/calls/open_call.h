// The course of every recorded call: an open record before the real call, and after it one
// transaction that counts it in the ledger and closes the record. Both halves are there once, for
// all functions: a wrapper is small.
#pragma once

#include "interpose/api/results.h"
#include "interpose/device/timing.h"
#include "interpose/marks/sites.h"
#include "interpose/record/graphs.h"
#include "interpose/record/groups.h"
#include "interpose/record/ring.h"

namespace tprof {

// One call, from before the real one to after it, on its wrapper's stack.
struct OpenCall {
  const void* caller;  // it returns there
  Record* record;
  CountedIn in;
  std::atomic<std::uint64_t>* counter;  // the one that its number was taken from, or null
  bool wants_line;
  bool in_ring;
  bool is_nccl;
  bool grouped;           // it counts with its group
  bool rare;              // it has one of these
  std::uint64_t came_ns;  // of one call in 61: its time in the library counts as the library's
  cudaGraph_t graph;      // it is captured into this one

  explicit OpenCall(const void* from) : caller(from) {}

  // These come before the real call. Between the last two, its maker fills all of the record but
  // what start() and finish() write.
  [[gnu::always_inline]] void enter(Thread& t, bool nccl) {
    ++t.depth;
    in.name = 0;
    counter = nullptr;
    is_nccl = nccl;
    grouped = rare = false;
  }
  // True: it is captured.
  [[gnu::always_inline]] bool is_captured(Thread& t, cudaStream_t stream) {
    if (--t.until_own_time != 0 && is_plain()) [[likely]]
      return false;
    return is_captured_now(t, stream);
  }
  [[gnu::always_inline]] Record& open(Thread& t, bool line) {
    wants_line = line;
    record = &next_record(t, line, in_ring);
    // Filling the record and finding its row take no time behind the clock's latency (3 ns less a
    // call), but what they touch is then part of the call's time, some 5 ns.
    record->start_ns = now_ns();
    return *record;
  }
  [[gnu::always_inline]] void start(Thread& t, std::uint8_t function) {
    if (wants_time_or_site()) [[unlikely]]
      add_time_and_site(t, function);
    publish(t, *record, function, in_ring);
  }
  // After it.
  [[gnu::noinline]] void finish(Thread& t, std::uint64_t now, std::uint16_t result);

 private:
  [[gnu::noinline]] bool is_captured_now(Thread& t, cudaStream_t stream);
  [[gnu::cold, gnu::noinline]] void finish_rare(bool ok);
  [[gnu::cold, gnu::noinline]] void add_time_and_site(Thread& t, std::uint8_t function);
};

// Makes the real call.
template <typename F>
[[gnu::always_inline]] inline auto run(Thread& t, OpenCall& call, F&& real) {
  const auto result = real();
  call.finish(t, now_ns(), static_cast<std::uint16_t>(result));
  return result;
}

// A graph launch: it has a line of its own, and a ledger row that multiplies what it executes.
// Enters the call. False: the launch is captured. It becomes a child graph of another graph, and is
// reported there (record/graphs.cpp).
bool begin_launch(Thread& t, OpenCall& call, cudaGraphExec_t executable, cudaStream_t stream);

template <typename F>
[[gnu::always_inline]] inline auto launch_call(Thread& t, cudaGraphExec_t executable,
                                               cudaStream_t stream, F&& real) {
  OpenCall call(__builtin_return_address(0));
  if (begin_launch(t, call, executable, stream)) [[likely]]
    return run(t, call, real);
  const auto result = real();
  --t.depth;
  return result;
}

}  // namespace tprof
