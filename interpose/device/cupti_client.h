// Makes us the client of CUPTI, which has only one (before CUDA 13.2). Others come first: we take
// it only if it is free, and give it up for good when the program asks for it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/device/cupti_abi.h"

// The buffers for CUPTI's records. CUPTI may write to a buffer until it returns it, even in threads
// that outlive our exit handlers. So none is ever freed.
namespace tprof::cupti::buffers {

struct Buffer {
  std::uint8_t* data;
  std::size_t valid;
};

// CUPTI calls these on any thread, also under its own locks. They take no lock and allocate
// nothing. If no buffer is left, CUPTI drops records.
void requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records);
void completed(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t size,
               std::size_t valid);

bool is_ours(const std::uint8_t* buffer);
// True if CUPTI has buffers of ours.
bool any_out();

// Gets a returned buffer. Returns false if there is none.
bool next(Buffer& buffer);
void give_back(const Buffer& buffer);

bool begin();  // false: no memory

}  // namespace tprof::cupti::buffers

namespace tprof::cupti {

// entering: it is not known yet whether we may. out: CUPTI is not available, or was given up for
// others. over: the process ends, and libcupti with it. Neither of the last two leads back to `in`.
enum class State : std::uint8_t { before, entering, in, leaving, out, over };
State state();
// True while records are being made.
bool recording();

// Loads libcupti and becomes its client on the calling thread, which must hold no lock. Takes up to
// 0.1 s. Returns the reason for a failure, or null.
const char* enter();

// Makes CUPTI record copies, kernels, and the calls that caused them. Returns false if CUPTI
// refuses.
bool start_records();
void stop_records();

// Makes CUPTI return complete buffers (buffers::completed). Not forced, which would return running
// kernels without their end.
void flush();
// Returns the next record of a buffer, or null at its end. Begin with null.
Record* next(std::uint8_t* buffer, std::size_t valid, Record* before);

// The calling thread's work until pop() belongs to the call `id`.
bool push(std::uint64_t id);
void pop();

// Reads the clock of CUPTI's records. Returns false if CUPTI does not provide it.
bool time(std::uint64_t& ns);

// Gives CUPTI up because the program asks for it: stops records, and reads the last ones with
// `last_read`. True: we were its client.
bool leave(void (*last_read)());

// Call this before libcupti's own exit handlers: it is not called any more.
void close();

void after_fork();  // in the child, which is no client

}  // namespace tprof::cupti
