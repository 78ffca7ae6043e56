// Finds the libcupti of the CUDA that the process runs. We load it if it is not mapped yet.
#pragma once

#include "interpose/device/cupti_abi.h"

namespace tprof::cupti {

struct Library {
  Result (*subscribe)(void** subscriber, void* callback, void* data);
  Result (*unsubscribe)(void* subscriber);
  Result (*register_callbacks)(Requested requested, Completed completed);
  Result (*enable)(ActivityKind kind);
  Result (*disable)(ActivityKind kind);
  Result (*flush)(std::uint32_t flag);
  Result (*next)(std::uint8_t* buffer, std::size_t valid, Record** record);
  Result (*push)(std::uint32_t whose, std::uint64_t id);
  Result (*pop)(std::uint32_t whose, std::uint64_t* id);
  Result (*time)(std::uint64_t* ns);
};

// Call this on a thread that holds no lock of ours: the loader has its own. False: there is no
// libcupti, or it lacks what we need. It stays mapped.
bool load(Library& library);

}  // namespace tprof::cupti
