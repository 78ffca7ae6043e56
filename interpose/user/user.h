// The functions behind tprof.h, which says what each of them does.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/user/tprof.h"

namespace tprof::user {

int push(const char* name, const tprof_with* with);
int push_on(const char* name, const tprof_with* with, void* stream);
std::uint64_t start_on(const char* name, const tprof_with* with, void* stream);
int pop(const char* name, const tprof_with* with);
std::int64_t pop_timed(const char* name, const tprof_with* with);
std::uint64_t start(const char* name, const tprof_with* with);
int end(std::uint64_t id, const tprof_with* with);
std::int64_t end_timed(std::uint64_t id, const tprof_with* with);
int instant(const char* name, const tprof_with* with);
int counter(const char* name, const char* const* keys, const double* values, std::size_t n,
            std::uint64_t time_ns);
int step(std::int64_t number);
int phase(const char* name);
int reset();
int pause(int on);
int flush(std::uint32_t timeout_ms);
int enabled();
int rank();
int times_on_device();
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
