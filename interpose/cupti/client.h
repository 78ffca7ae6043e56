// Our part in CUPTI: one of its clients, and it has room for one (before CUDA 13.2). Whoever else
// wants it gets it: we ask for it only where it is free, and give it up for good the moment the
// program asks.
#pragma once

#include <cstdint>

#include "interpose/cupti/abi.h"

namespace tprof::cupti {

// entering: it is not known yet whether we may. out: not to be had, or given up for others. over:
// the process ends, and libcupti with it. Neither of the last two leads back to `in`.
enum class State : std::uint8_t { before, entering, in, leaving, out, over };
State state();
// Records are being made.
bool recording();

// Loads libcupti and becomes its client, on the calling thread, which must hold no lock: up to
// 0.1 s. What keeps us from it, or null.
const char* enter();

// Records are made of copies, kernels and the calls that they come from. False: CUPTI refuses.
bool start_records();
void stop_records();

// What is complete comes back (buffers.h). Not forced, which would hand out kernels that still run,
// without their end.
void flush();
// The next record of a buffer's, null at its end. Begin with null.
Record* next(std::uint8_t* buffer, std::size_t valid, Record* before);

// What the calling thread makes from here on is of the call `id`, until pop().
bool push(std::uint64_t id);
void pop();

// CUPTI's clock, in which its records are. False: it does not tell.
bool time(std::uint64_t& ns);

// The program asks for CUPTI: no more records, `last_look` at what there is, and out. True: we were
// in it.
bool leave(void (*last_look)());

// The exit handlers come to libcupti's own: nothing is asked of it any more.
void close();

void after_fork();  // in the child, which has nothing of it

}  // namespace tprof::cupti
