// Times as traces have them.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>

namespace tprof::trace_export {

// Writes "1042.117" for 1042117 and returns the end. It takes at most 24 bytes.
inline char* put_micros(char* at, std::int64_t ns) {
  if (ns < 0) *at++ = '-';
  const std::uint64_t size =
      ns < 0 ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  at = std::to_chars(at, at + 20, size / 1000).ptr;
  const auto rest = static_cast<std::uint32_t>(size % 1000);
  *at++ = '.';
  *at++ = static_cast<char>('0' + rest / 100);
  *at++ = static_cast<char>('0' + rest / 10 % 10);
  *at++ = static_cast<char>('0' + rest % 10);
  return at;
}

inline std::string micros(std::int64_t ns) {
  char text[24];
  return {text, put_micros(text, ns)};
}

}  // namespace tprof::trace_export
