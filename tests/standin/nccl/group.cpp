#include "nccl/group.h"

#include <signal.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "engine/model.h"

namespace standin {
namespace {

struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<Call> calls;
  std::vector<Setup> setups;
};
thread_local Group group;

ncclResult_t run_steps(const std::vector<Setup>& setups) {
  size_t most = 0;
  for (const Setup& s : setups) most = std::max(most, s.steps.size());
  for (size_t i = 0; i < most; ++i) {
    for (const Setup& s : setups) {
      if (i >= s.steps.size()) continue;
      const ncclResult_t result = s.steps[i]();
      if (result != ncclSuccess) return result;
    }
  }
  return ncclSuccess;
}

// As in NCCL, setting up non-blocking communicators goes on in a thread of its own.
ncclResult_t run_in_background(std::vector<Setup> setups) {
  for (const Setup& s : setups) {
    if (s.known) s.known->in_progress = true;
  }
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([setups = std::move(setups)] {
    const ncclResult_t result = run_steps(setups);
    for (const Setup& s : setups) {
      if (!s.known) continue;
      s.known->setup_error = result;
      s.known->in_progress = false;
    }
  }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return ncclInProgress;
}

// Returns a kernel name as NCCL's own are named, mangled.
const char* kernel_of(const char* function) {
  static const auto& names = *new std::map<std::string_view, std::string>([] {
    std::map<std::string_view, std::string> mangled;
    for (const auto& [called, kernel] : std::initializer_list<std::pair<const char*, std::string>>{
             {"ncclAllGather", "AllGather_RING_LL"},
             {"ncclReduceScatter", "ReduceScatter_Sum_f32_RING_LL"},
             {"ncclAllReduce", "AllReduce_Sum_f32_RING_LL"},
             {"ncclReduce", "Reduce_Sum_f32_RING_LL"},
             {"ncclBroadcast", "Broadcast_RING_LL"},
             {"ncclBcast", "Broadcast_RING_LL"},
             {"", "SendRecv"}}) {
      const std::string name = "ncclDevKernel_" + kernel;
      mangled[called] =
          "_Z" + std::to_string(name.size()) + name + "24ncclDevKernelArgsStorageILm4096EE";
    }
    return mangled;
  }());
  const auto found = names.find(function);
  return (found == names.end() ? names.at("") : found->second).c_str();
}

// Submits one piece of work per communicator and stream, in the order of the calls.
void launch(const std::vector<Call>& calls) {
  const std::lock_guard lock(engine_mutex());
  std::vector<bool> taken(calls.size());
  for (size_t first = 0; first < calls.size(); ++first) {
    if (taken[first]) continue;
    const Call& head = calls[first];
    Op op{.type = cudaGraphNodeTypeKernel, .order = head.comm->order};
    op.kernel = kernel_of(head.key.function);
    std::vector<Task> tasks;
    bool hang_device = false;
    for (size_t i = first; i < calls.size(); ++i) {
      const Call& call = calls[i];
      if (call.comm != head.comm || call.stream != head.stream) continue;
      taken[i] = true;
      tasks.push_back(call.task);
      hang_device |= call.hang_device;
      tally::Key replayed = call.key;
      replayed.mode = tally::Mode::kReplayed;
      op.counted.push_back({replayed, call.count, call.bytes});
    }
    op.takes = time_of(*head.comm, tasks);
    op.meets = head.comm->nranks > 1;
    op.run = [comm = head.comm, tasks = std::move(tasks), hang_device] {
      if (hang_device) hang();
      return run_tasks(*comm, tasks);
    };
    submit(*head.stream, std::move(op));
  }
}

ncclResult_t finish(Group done) {
  ncclResult_t result = done.error;
  bool in_progress = false;
  if (result == ncclSuccess && !done.setups.empty()) {
    const bool blocking = std::all_of(done.setups.begin(), done.setups.end(),
                                      [](const Setup& s) { return s.blocking; });
    result = blocking ? run_steps(done.setups) : run_in_background(std::move(done.setups));
    in_progress = result == ncclInProgress;
    if (in_progress) result = ncclSuccess;
  }
  if (result == ncclSuccess) launch(done.calls);
  for (const Call& call : done.calls) {
    if (result == ncclSuccess) {
      tally::returned(call.row, call.count, call.bytes);
      in_progress |= !call.comm->blocking;
    } else {
      tally::failed(call.row);
    }
  }
  return result == ncclSuccess && in_progress ? ncclInProgress : result;
}

}  // namespace

void group_start() {
  ++group.depth;
}

ncclResult_t group_end() {
  if (group.depth == 0) return ncclInvalidUsage;
  if (--group.depth > 0) return ncclSuccess;
  return finish(std::exchange(group, {}));
}

ncclResult_t group_simulate_end() {
  if (group.depth == 0) return ncclInvalidUsage;
  if (--group.depth > 0) return ncclSuccess;
  for (const Call& call : group.calls) tally::failed(call.row);  // nothing was executed
  return std::exchange(group, {}).error;
}

ncclResult_t add_call(Call call) {
  if (group.depth > 0) {
    group.calls.push_back(std::move(call));
    return ncclSuccess;
  }
  Group one;
  one.calls.push_back(std::move(call));
  return finish(std::move(one));
}

ncclResult_t add_setup(Setup setup) {
  if (group.depth > 0) {
    const bool blocking = setup.blocking;
    if (!blocking && setup.known) setup.known->in_progress = true;
    group.setups.push_back(std::move(setup));
    return blocking ? ncclSuccess : ncclInProgress;
  }
  Group one;
  one.setups.push_back(std::move(setup));
  return finish(std::move(one));
}

ncclResult_t fail_call(ncclResult_t result) {
  if (group.depth > 0 && group.error == ncclSuccess) group.error = result;
  return result;
}

}  // namespace standin
