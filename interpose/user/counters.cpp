#include <algorithm>
#include <cstring>
#include <string_view>

#include "interpose/marks/counters.h"
#include "interpose/record/thread.h"
#include "interpose/user/user.h"
#include "interpose/user/when.h"

namespace tprof::user {
namespace {

// Appends a name, with its NUL. False: no room.
bool add_name(Counter& to, const char* name) {
  const std::size_t size = strnlen(name, kMaxCounterNames) + 1;
  if (to.length + size > kMaxCounterNames) return false;
  std::memcpy(to.names + to.length, name, size);
  to.length += static_cast<std::uint32_t>(size);
  return true;
}

}  // namespace

int counter(const char* name, const char* const* keys, const double* values, std::size_t n,
            std::uint64_t time_ns) {
  if (name == nullptr || keys == nullptr || values == nullptr || n == 0 || n > kMaxCounterValues) {
    return TPROF_BAD_ARGUMENT;
  }
  Counter c{};
  c.values = static_cast<std::uint32_t>(n);
  if (!add_name(c, name)) return TPROF_BAD_ARGUMENT;
  for (std::size_t i = 0; i < n; ++i) {
    const auto same = [&](const char* key) { return std::strcmp(key, keys[i]) == 0; };
    if (keys[i] == nullptr || std::any_of(keys, keys + i, same) || !add_name(c, keys[i])) {
      return TPROF_BAD_ARGUMENT;
    }
    c.value[kMaxCounterValues - n + i] = values[i];
  }
  if (recording_thread() == nullptr) return TPROF_OK;
  const std::uint64_t at_ns = monotonic(time_ns);
  marks::count(c, at_ns != 0 ? at_ns : now_ns());
  return TPROF_OK;
}

}  // namespace tprof::user
