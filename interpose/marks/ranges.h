// The program's NVTX ranges, scopes and counters. They never start a session, and never use up what
// calls need.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string_view>

#include "interpose/format/counters.h"
#include "interpose/format/ranges.h"

namespace tprof::marks {

// The attributes that the program gave besides the name. `given` says which of `values` and
// `amounts` are valid.
struct Attributes {
  std::uint8_t given = 0;
  RangeAttributes values{};
  RangeAmounts amounts{};
  std::uint64_t at_ns = 0;  // CLOCK_MONOTONIC, when it began; 0: now
  bool counts = false;      // a scope, with totals by name in the ledger
  bool on_stream = false;   // timed on `stream`, if calls are timed
  CUstream stream = nullptr;
};

// The end of a range. `name`: ends the innermost range of that name; empty: of any name. `amounts`
// are added to those at its beginning. `error` is the type of the exception that left it; empty:
// none. `took_ns` gets its duration, if recorded.
struct End {
  std::string_view name{};
  RangeAmounts amounts{};
  std::string_view error{};
  std::uint64_t at_ns = 0;
  std::uint64_t* took_ns = nullptr;
};

// `name`: at most kMaxRangeName bytes. Budget of a push and its pop: two clock reads (44 ns) + 45
// ns.
void push(std::uint8_t domain, std::string_view name, const Attributes& attributes = {});
// Returns false if there is no such open range.
bool pop(std::uint8_t domain, const End& end = {});

// Returns a number for end(), which any thread may call. 0: the range is not recorded.
std::uint64_t start(std::uint8_t domain, std::string_view name, const Attributes& attributes = {});
// Returns false if it has already ended, or never began. (True for 0, and for ranges of another
// process.)
bool end(std::uint64_t number, const End& end = {});

void mark(std::uint8_t domain, std::string_view name, const Attributes& attributes = {});

// `at_ns` is on CLOCK_MONOTONIC. Budget: as a range's push and pop.
void count(const Counter& counter, std::uint64_t at_ns);

void after_fork();  // in the child: drops its parent's ranges

}  // namespace tprof::marks
