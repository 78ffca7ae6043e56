// How every call is recorded: an open record before the real call, and after it one transaction
// that counts the call in the ledger and closes the record. All wrappers share both halves.
#pragma once

#include "interpose/api/results.h"
#include "interpose/device/timing.h"
#include "interpose/marks/sites.h"
#include "interpose/record/graphs.h"
#include "interpose/record/groups.h"
#include "interpose/record/transaction.h"

namespace tprof {

// One call, on its wrapper's stack.
struct OpenCall {
  const void* caller;  // return address
  Record* record;
  CountedIn in;
  std::atomic<std::uint64_t>* counter;  // of its sequence number, or null
  bool wants_line;
  bool in_ring;
  bool is_nccl;
  bool grouped;           // it counts with its group
  bool rare;              // the call has one of the following
  std::uint64_t came_ns;  // of one call in 61, whose time in the library is measured
  cudaGraph_t graph;      // the call is captured into this graph

  explicit OpenCall(const void* from) : caller(from) {}

  // Called before the real call. Between the last two, the caller fills the record, except for what
  // start() and finish() write.
  [[gnu::always_inline]] void enter(Thread& t, bool nccl) {
    ++t.depth;
    in.name = 0;
    counter = nullptr;
    is_nccl = nccl;
    grouped = rare = false;
  }
  // Returns true if the call is captured.
  [[gnu::always_inline]] bool is_captured(Thread& t, cudaStream_t stream) {
    if (--t.until_own_time != 0 && is_plain()) [[likely]]
      return false;
    return is_captured_now(t, stream);
  }
  [[gnu::always_inline]] Record& open(Thread& t, bool line) {
    wants_line = line;
    record = &next_record(t, line, in_ring);
    // Reading the clock first hides the filling of the record and the search for its row behind the
    // clock's latency (3 ns less per call), but adds some 5 ns to the call's time.
    record->start_ns = now_ns();
    return *record;
  }
  [[gnu::always_inline]] void start(Thread& t, std::uint8_t function) {
    if (wants_time_or_site()) [[unlikely]]
      add_time_and_site(t, function);
    publish(t, *record, function, in_ring);
  }
  // Called after it.
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

// Enters a graph launch, which has its own line, and a ledger row that counts how often its
// contents are executed. Returns false if the launch is captured: it becomes a child graph, and is
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
