// The speed of the imagined device, and its faults on demand (STANDIN_* variables).
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>

namespace standin {

int device_count();  // STANDIN_DEVICES, 8

// The launcher's RANK where there is one, else the rank in the process's first communicator.
int process_rank();
void set_first_rank(int rank);
// The rank that rank:… refers to in a call on a communicator, of which a process may hold several
// ranks.
int acting_rank(int comm_rank);

// STANDIN_LATENCY_US + bytes / STANDIN_GBPS, times the factor of STANDIN_SLOW_RANK=rank:factor.
std::chrono::nanoseconds transfer_time(size_t bytes, int rank);
// STANDIN_KERNEL_US + blocks * STANDIN_BLOCK_US, times the same factor.
std::chrono::nanoseconds kernel_time(dim3 grid);
// STANDIN_SLOW_LAUNCH=us:n: delays each nth launch of the process by that long before its kernel is
// in the stream, as a host without a free core would.
void hold_up_launch();
// For how long a stream spins for more work, or for the end of what it runs, before it sleeps
// (STANDIN_SPIN_US, 0): a sleeping one is tens of microseconds late where a GPU is not.
std::chrono::nanoseconds spin_time();
// How long a rank waits for a peer before the wait ends in an error (STANDIN_TIMEOUT_S, 300).
std::chrono::seconds peer_timeout();

struct Outcome {
  bool hang_device = false;  // STANDIN_HANG_DEVICE: the call returns, its work never ends
};
// Counts a call of `function` on `rank`, from 1, and returns its fault. Does not return for
// STANDIN_HANG and STANDIN_DIE (SIGKILL), both rank:function:nth. Each variable takes a
// comma-separated list.
Outcome meet_fault(const char* function, int rank);

[[noreturn]] void hang();

}  // namespace standin
