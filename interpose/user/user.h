// The functions of tprof.h that read or reset the counts. tprof.h documents them.
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

// For a forked child: step and counts belong to its parent.
void forget_step();
void forget_counts();
inline void after_fork() {
  forget_step();
  forget_counts();
}

}  // namespace tprof::user
