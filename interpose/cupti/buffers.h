// The buffers that CUPTI writes records into. A buffer that CUPTI was given may be written to at
// any time until it comes back, also by threads that outlive our exit handlers: none is ever freed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tprof::cupti {

struct Buffer {
  std::uint8_t* data;
  std::size_t valid;
};

namespace buffers {

// What CUPTI calls, on any thread, also under locks of its own: they take none, and allocate
// nothing. Where no buffer is left CUPTI drops records.
void requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records);
void completed(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t size,
               std::size_t valid);

bool is_ours(const std::uint8_t* buffer);
// CUPTI has buffers of ours.
bool any_out();

// One that came back, in the order in which they did. False: none.
bool next(Buffer& buffer);
void give_back(const Buffer& buffer);

bool begin();  // false: no memory

}  // namespace buffers
}  // namespace tprof::cupti
