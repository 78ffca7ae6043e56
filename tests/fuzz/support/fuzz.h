// Shared by the fuzz targets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

// Each target defines it; libFuzzer calls it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace tprof::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Aborts if a promise is broken, which is as bad as a crash.
inline void promise(bool kept, const char* what, std::string_view evidence = {}) {
  if (kept) return;
  std::fprintf(stderr, "promise broken: %s\n%.*s\n", what, static_cast<int>(evidence.size()),
               evidence.data());
  std::abort();
}

}  // namespace tprof::fuzz
