#include "interpose/calls/open_call.h"

#include "interpose/record/communicators.h"

namespace tprof {
bool OpenCall::is_captured_now(Thread& t, cudaStream_t stream) {
  came_ns = t.until_own_time == 0 ? now_ns() : 0;
  if (came_ns != 0) t.until_own_time = Thread::kOwnTimeEvery;
  graph = graphs::captured_into(stream);
  rare = came_ns != 0 || graph != nullptr;
  return graph != nullptr;
}

void OpenCall::add_time_and_site(Thread& t, std::uint8_t function) {
  if (device::on()) start_timing(t, *record, function);
  if (sites::on()) record->site = sites::site_of(caller);
  record->start_ns = now_ns();
}

void OpenCall::finish(Thread& t, std::uint64_t now, std::uint16_t result) {
  Record& r = *record;
  const bool ok = result == 0 || (is_nccl && nccl_accepted(result));
  const std::uint64_t duration = now - r.start_ns;
  set_outcome(r, duration, result);
  if (grouped) [[unlikely]] {
    cudaGraph_t into = rare ? graph : nullptr;
    add_to_group(t, {in_ring ? &r : nullptr, r, in.key, in.name, counter, into}, r);
    --t.depth;
    return;
  }
  if (device::on()) [[unlikely]]
    stop_timing(t, r, in.key, ok);
  {
    Transaction transaction(t);
    count_in_ledger(transaction, in, r, duration, ok);
    transaction.close(r);
    if (!in_ring && wants_line) count_lost_line(transaction);
  }
  if (!ok) [[unlikely]]
    comms::give_back(counter, r.seq);
  if (rare) [[unlikely]]
    finish_rare(ok);
  --t.depth;
}

void OpenCall::finish_rare(bool ok) {
  const Record& r = *record;
  if (came_ns != 0) {
    Head& head = session::mapping().head();
    head.own_ns.fetch_add(now_ns() - came_ns - r.dur_ns, std::memory_order_relaxed);
    head.own_timed_calls.fetch_add(1, std::memory_order_relaxed);
  }
  if (graph != nullptr && ok) graphs::captured_call(graph, {in.key, r.count});
}

bool begin_launch(Thread& t, OpenCall& call, cudaGraphExec_t executable, cudaStream_t stream) {
  call.enter(t, false);
  if (graphs::captured_into(stream) != nullptr) return false;
  const std::uint32_t entry = graphs::launchable(executable);
  Record& r = call.open(t, true);
  const std::uint64_t start_ns = r.start_ns;
  r = {};
  r.start_ns = start_ns;
  r.peer = kNoPeer;
  r.stream = reinterpret_cast<std::uintptr_t>(stream);
  set_comm(r, entry);
  call.in.key = key_words(kMetaLaunch, Bucket{}, 0, Mode::direct, 0, 0, r.comm);
  call.in.row = expect_row(t, call.in.key);
  call.start(t, kMetaLaunch);
  return true;
}

}  // namespace tprof
