// Carries out collectives and point-to-point calls in shared memory, piece by piece.
#include <algorithm>
#include <cstring>
#include <map>

#include "engine/model.h"
#include "nccl/communicator.h"
#include "nccl/reduce.h"

namespace standin {
namespace {

class Collective {
 public:
  Collective(ncclComm& comm, const Task& task)
      : comm_(comm), task_(task), size_(size_of(task.type)) {}

  // Each rank shows a piece, all meet, and each takes what it needs, until all pieces are through.
  bool run() {
    const size_t n = static_cast<size_t>(comm_.nranks);
    const bool per_peer = task_.function == Function::kReduceScatter ||
                          task_.function == Function::kAlltoAll ||
                          task_.function == Function::kScatter;
    capacity_ = kWindow / size_ / (per_peer ? n : 1);
    for (size_t at = 0; at < task_.count; at += capacity_) {
      const size_t some = std::min(capacity_, task_.count - at);
      show(at, some);
      if (!comm_.segment.barrier()) return false;
      take(at, some);
      ++comm_.round;
    }
    return true;
  }

 private:
  void show(size_t at, size_t some) {
    switch (task_.function) {
      case Function::kReduceScatter:
      case Function::kAlltoAll:
        for (int r = 0; r < comm_.nranks; ++r) put(slot(r), offset(r) + at, some);
        return;
      case Function::kScatter:
        if (!is_root()) return;
        for (int r = 0; r < comm_.nranks; ++r) put(slot(r), offset(r) + at, some);
        return;
      case Function::kBroadcast:
        if (is_root()) put(0, at, some);
        return;
      default:
        put(0, at, some);
    }
  }

  void take(size_t at, size_t some) {
    const size_t mine = slot(comm_.rank);
    switch (task_.function) {
      case Function::kAllGather:
        return take_from_all(0, at, some);
      case Function::kAlltoAll:
        return take_from_all(mine, at, some);
      case Function::kGather:
        if (is_root()) take_from_all(0, at, some);
        return;
      case Function::kScatter:
        return take_from(task_.peer, mine, at, some);
      case Function::kBroadcast:
        return take_from(task_.peer, 0, at, some);
      case Function::kReduceScatter:
        return take_reduced(mine, at, some);
      case Function::kReduce:
        if (is_root()) take_reduced(0, at, some);
        return;
      default:
        return take_reduced(0, at, some);
    }
  }

  bool is_root() const { return comm_.rank == task_.peer; }
  size_t slot(int rank) const { return static_cast<size_t>(rank) * capacity_ * size_; }
  size_t offset(int rank) const { return static_cast<size_t>(rank) * task_.count; }
  const char* shown_by(int rank, size_t slot) {
    return comm_.segment.window(rank, comm_.round) + slot;
  }

  void put(size_t slot, size_t first, size_t some) {
    char* to = comm_.segment.window(comm_.rank, comm_.round) + slot;
    const char* from = static_cast<const char*>(task_.send) + first * size_;
    if (const UserReduction* user = task_.scaling.get()) {
      scale(task_.type, user->on_device ? user->pointer : user->immediate, from, to, some);
    } else {
      std::memcpy(to, from, some * size_);
    }
  }
  void take_from(int rank, size_t slot, size_t first, size_t some) {
    std::memcpy(static_cast<char*>(task_.recv) + first * size_, shown_by(rank, slot), some * size_);
  }
  void take_from_all(size_t slot, size_t at, size_t some) {
    for (int r = 0; r < comm_.nranks; ++r) take_from(r, slot, offset(r) + at, some);
  }
  void take_reduced(size_t slot, size_t at, size_t some) {
    std::vector<const void*> in;
    in.reserve(static_cast<size_t>(comm_.nranks));
    for (int r = 0; r < comm_.nranks; ++r) in.push_back(shown_by(r, slot));
    reduce(task_.type, task_.reduction, in, static_cast<char*>(task_.recv) + at * size_, some);
  }

  ncclComm& comm_;
  const Task& task_;
  const size_t size_;
  size_t capacity_ = 0;
};

struct Transfer {
  bool send;
  int peer;
  char* data;
  size_t left;
};

// All transfers of a group go on at once, except that the same peer and direction take turns.
bool run_transfers(ncclComm& comm, std::vector<Transfer> transfers) {
  Segment& segment = comm.segment;
  std::erase_if(transfers, [](const Transfer& t) { return t.left == 0; });
  while (!transfers.empty()) {
    const uint32_t bell = segment.bell();
    bool moved = false;
    std::map<std::pair<bool, int>, bool> busy;
    for (Transfer& t : transfers) {
      if (std::exchange(busy[{t.send, t.peer}], true)) continue;
      Mailbox& box =
          t.send ? segment.mailbox(comm.rank, t.peer) : segment.mailbox(t.peer, comm.rank);
      if ((box.full.load(std::memory_order_acquire) != 0) == t.send) continue;
      const size_t some = t.send ? std::min(t.left, kMailbox) : std::min<size_t>(t.left, box.bytes);
      if (t.send) {
        std::memcpy(box.data, t.data, some);
        box.bytes = static_cast<uint32_t>(some);
      } else {
        std::memcpy(t.data, box.data, some);
      }
      box.full.store(t.send ? 1 : 0, std::memory_order_release);
      segment.ring(t.peer);
      t.data += some;
      t.left -= some;
      moved = true;
    }
    std::erase_if(transfers, [](const Transfer& t) { return t.left == 0; });
    const auto waits_for = [&](int rank) {
      return std::any_of(transfers.begin(), transfers.end(),
                         [rank](const Transfer& t) { return t.peer == rank; });
    };
    if (!moved && !transfers.empty() && !segment.wait_bell(bell, waits_for)) return false;
  }
  return true;
}

size_t bytes_moved(const ncclComm& comm, const Task& task) {
  const bool whole = task.function == Function::kAllReduce ||
                     task.function == Function::kBroadcast || task.function == Function::kReduce ||
                     task.function == Function::kSend || task.function == Function::kRecv;
  return task.count * size_of(task.type) * (whole ? 1 : static_cast<size_t>(comm.nranks));
}

}  // namespace

std::chrono::nanoseconds time_of(const ncclComm& comm, const std::vector<Task>& tasks) {
  size_t bytes = 0;
  for (const Task& task : tasks) bytes += bytes_moved(comm, task);
  return transfer_time(bytes, acting_rank(comm.rank));
}

cudaError_t run_tasks(ncclComm& comm, const std::vector<Task>& tasks) {
  bool good = true;
  std::vector<Transfer> transfers;
  for (const Task& task : tasks) {
    const size_t size = task.count * size_of(task.type);
    if (task.function == Function::kSend) {
      transfers.push_back(
          {true, task.peer, static_cast<char*>(const_cast<void*>(task.send)), size});
    } else if (task.function == Function::kRecv) {
      transfers.push_back({false, task.peer, static_cast<char*>(task.recv), size});
    } else {
      good = good && Collective(comm, task).run();
    }
  }
  good = good && run_transfers(comm, std::move(transfers));
  // An aborted communicator just ends its work; work that a dead peer left waiting is a fault.
  return good || comm.segment.aborted() ? cudaSuccess : cudaErrorLaunchTimeout;
}

}  // namespace standin
