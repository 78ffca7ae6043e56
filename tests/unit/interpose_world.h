// The traced process without its writer and without a preload: a mapping, threads that record into
// it, and communicators. Calls are made through the same templates as the wrappers'.
#pragma once

#include <deque>
#include <memory>

#include <string>
#include <string_view>
#include <vector>

#include "interpose/calls/copy_call.h"
#include "interpose/calls/nccl_call.h"
#include "interpose/format/commit.h"
#include "interpose/write/drain.h"

namespace tprof::test {

class World {
 public:
  // `fd` is a file for the mapping, or -1 for memory that dies with the process.
  explicit World(int fd = -1) {
    mapping().open(fd, {"", true, false});
    Head& head = mapping().head();
    head.layout = kRingLayout;
    head.head_size = sizeof(Head);
    head.copy_element_size = 1;
    head.rank_known = true;
    head.events = EventLines::on;
    head.functions = kFunctionCount;
    for (std::size_t i = 1; i < kFunctionCount; ++i) {
      kFunctions[i].name.copy(head.function[i].name, sizeof head.function[i].name - 1);
      head.function[i].elements = kFunctions[i].elements;
      head.function[i].collective = kFunctions[i].order == Order::collective;
    }
    commit_progress(head, *std::make_unique<Progress>());
  }
  ~World() {
    for (Thread& t : threads_) {
      if (t.pending != nullptr) t.pending->release();
    }
    comms::forget_all();
    mapping().close();
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  static Mapping& mapping() { return session::mapping(); }
  static View view() { return mapping().view(); }

  Thread& thread(std::uint32_t tid, std::uint32_t ring_records) {
    Mapping& m = mapping();
    const std::uint64_t levels = ledger_rows_in(0) * sizeof(LedgerRow);
    const std::uint64_t offset =
        m.allocate(sizeof(ThreadArea) + 64 + levels + ring_records * sizeof(Record));
    Thread& t = threads_.emplace_back();
    t.area = m.at<ThreadArea>(offset);
    t.area->level[0] = offset + ((sizeof(ThreadArea) + 63) & ~std::uint64_t{63});
    t.area->ring = t.area->level[0] + levels;
    t.area->capacity = ring_records;
    t.area->tid = tid;
    t.ring = m.at<Record>(t.area->ring);
    t.mask = ring_records - 1;
    const std::uint32_t n = m.head().threads;
    m.head().thread[n] = offset;
    m.head().threads = n + 1;
    return t;
  }

  // Returns a handle that stands for a communicator.
  ncclComm_t communicator(int nranks, int rank = 0) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): never dereferenced
    auto* handle = reinterpret_cast<ncclComm_t>(handles_ += 64);
    comms::add(handle, comms::identified(mix64(handles_), nullptr, nranks, rank));
    return handle;
  }

 private:
  std::deque<Thread> threads_;
  std::uintptr_t handles_ = 0x10000;
};

// NVTX ranges belong to the calling thread: for as long as this lives, that is `t`.
class AsThread {
 public:
  explicit AsThread(Thread& t) : t_(t) {
    t_thread = t;
    t_thread.session = session::number();
  }
  ~AsThread() {
    t_ = t_thread;
    t_thread = Thread{};
  }
  AsThread(const AsThread&) = delete;
  AsThread& operator=(const AsThread&) = delete;

 private:
  Thread& t_;
};

// Makes calls as a wrapper does; `answer` is the library's result, `library` is run in its place.
template <typename F>
ncclResult_t all_reduce(Thread& t, ncclComm_t comm, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t op, F&& library) {
  return nccl_call<Fn::ncclAllReduce, Bucket::ALLREDUCE>(t,
                                                         {.send = nullptr,
                                                          .recv = &t,
                                                          .count = count,
                                                          .type = type,
                                                          .comm = comm,
                                                          .stream = nullptr,
                                                          .reduce = reduce_of(op)},
                                                         nullptr, library);
}
inline ncclResult_t all_reduce(Thread& t, ncclComm_t comm, std::size_t count,
                               ncclResult_t answer = ncclSuccess) {
  return all_reduce(t, comm, count, ncclFloat32, ncclSum, [=] { return answer; });
}
inline ncclResult_t all_gather(Thread& t, ncclComm_t comm, std::size_t count,
                               ncclResult_t answer = ncclSuccess) {
  return nccl_call<Fn::ncclAllGather, Bucket::ALLGATHER>(t,
                                                         {.send = nullptr,
                                                          .recv = &t,
                                                          .count = count,
                                                          .type = ncclBfloat16,
                                                          .comm = comm,
                                                          .stream = nullptr},
                                                         nullptr, [=] { return answer; });
}
inline ncclResult_t broadcast(Thread& t, ncclComm_t comm, std::size_t count, int root,
                              ncclResult_t answer = ncclSuccess) {
  return nccl_call<Fn::ncclBroadcast, Bucket::BROADCAST>(t,
                                                         {.send = nullptr,
                                                          .recv = &t,
                                                          .count = count,
                                                          .type = ncclInt64,
                                                          .comm = comm,
                                                          .stream = nullptr,
                                                          .peer = root},
                                                         nullptr, [=] { return answer; });
}
inline ncclResult_t send(Thread& t, ncclComm_t comm, std::size_t count, int peer) {
  return nccl_call<Fn::ncclSend, Bucket::P2P>(t,
                                              {.send = &t,
                                               .recv = nullptr,
                                               .count = count,
                                               .type = ncclUint8,
                                               .comm = comm,
                                               .stream = nullptr,
                                               .peer = peer},
                                              nullptr, [] { return ncclSuccess; });
}
inline cudaError_t copy_to_device(Thread& t, std::size_t bytes, cudaError_t answer = cudaSuccess) {
  return copy_call<Fn::cudaMemcpyAsync>(t,
                                        {.dst = nullptr,
                                         .src = &t,
                                         .bytes = bytes,
                                         .kind = cudaMemcpyHostToDevice,
                                         .stream = nullptr,
                                         .sync = false},
                                        [=] { return answer; });
}

// Returns the totals of one function over all threads.
inline LedgerValues total_of(const View& view, Fn fn) {
  Pages<Total> totals;
  collect_totals(view, totals);
  LedgerValues sum{};
  for (const Total& t : totals) {
    if (t.key.function != static_cast<std::uint8_t>(fn)) continue;
    sum.calls += t.values.calls;
    sum.count += t.values.count;
    sum.failed += t.values.failed;
  }
  return sum;
}
inline std::uint64_t drops(const View& view) {
  Pages<Total> totals;
  collect_totals(view, totals);
  std::uint64_t sum = 0;
  for (const Total& t : totals) sum += t.key.function == kMetaDropped ? t.values.calls : 0;
  return sum;
}

inline std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return lines;
}

}  // namespace tprof::test
