// The buffers that CUPTI writes records into. CUPTI may write to a buffer that it was given until
// the buffer comes back, also by threads that outlive our exit handlers. So none is ever freed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tprof::cupti {

struct Buffer {
  std::uint8_t* data;
  std::size_t valid;
};

namespace buffers {

// CUPTI calls these on any thread, also under locks of its own. They take no lock, and allocate
// nothing. If no buffer is left, CUPTI drops records.
void requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records);
void completed(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t size,
               std::size_t valid);

bool is_ours(const std::uint8_t* buffer);
// True if CUPTI has buffers of ours.
bool any_out();

// Gets the next buffer that came back, in the order in which they did. False: none.
bool next(Buffer& buffer);
void give_back(const Buffer& buffer);

bool begin();  // false: no memory

}  // namespace buffers
}  // namespace tprof::cupti
