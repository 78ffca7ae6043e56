// The functions behind tprof.h that ask what was counted, or say from where on. tprof.h says what
// each of them does.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/user/tprof.h"

namespace tprof::user {

int reset();
int pause(int on);
int flush(std::uint32_t timeout_ms);
int enabled();
int rank();
int flush_device(std::uint32_t timeout_ms);
std::size_t totals(char* json, std::size_t size);
std::size_t totals_and_reset(char* json, std::size_t size);

// A forked child calls this: the step is its parent's, and so are the counts.
void forget_step();
void forget_counts();
inline void after_fork() {
  forget_step();
  forget_counts();
}

}  // namespace tprof::user
