// Makes us a client of CUPTI, which has room for one (before CUDA 13.2). Whoever else wants it gets
// it: we ask for it only if it is free, and give it up for good the moment the program asks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/device/cupti_abi.h"

// The buffers that CUPTI writes records into. CUPTI may write to a buffer that it was given until
// the buffer comes back, also by threads that outlive our exit handlers. So none is ever freed.
namespace tprof::cupti::buffers {

struct Buffer {
  std::uint8_t* data;
  std::size_t valid;
};

// CUPTI calls these on any thread, also under locks of its own. They take no lock, and allocate
// nothing. If no buffer is left, CUPTI drops records.
void requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records);
void completed(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t size,
               std::size_t valid);

bool is_ours(const std::uint8_t* buffer);
// True if CUPTI has buffers of ours.
bool any_out();

// Gets a buffer that came back. False: none.
bool next(Buffer& buffer);
void give_back(const Buffer& buffer);

bool begin();  // false: no memory

}  // namespace tprof::cupti::buffers

namespace tprof::cupti {

// entering: it is not known yet whether we may. out: CUPTI is not to be had, or was given up for
// others. over: the process ends, and libcupti with it. Neither of the last two leads back to `in`.
enum class State : std::uint8_t { before, entering, in, leaving, out, over };
State state();
// True while records are being made.
bool recording();

// Loads libcupti and becomes its client on the calling thread, which must hold no lock. This takes
// up to 0.1 s. Returns what keeps us from it, or null.
const char* enter();

// Has CUPTI make records of copies, kernels and the calls that they come from. False: CUPTI
// refuses.
bool start_records();
void stop_records();

// Has CUPTI hand back what is complete (buffers::completed). It is not forced: that would hand out
// kernels that still run, without their end.
void flush();
// Returns the next record of a buffer, or null at its end. Begin with null.
Record* next(std::uint8_t* buffer, std::size_t valid, Record* before);

// The calling thread's work from here on belongs to the call `id`, until pop().
bool push(std::uint64_t id);
void pop();

// Tells the time on CUPTI's clock, which its records use. False: it does not tell.
bool time(std::uint64_t& ns);

// Gives CUPTI up because the program asks for it: there are no more records, `last_read` reads what
// there is, and we are out. True: we were in it.
bool leave(void (*last_read)());

// Call this when the exit handlers come to libcupti's own: nothing is asked of it any more.
void close();

void after_fork();  // in the child, which has nothing of it

}  // namespace tprof::cupti
