// The program's NVTX ranges and scopes. They never start a session, and never take what a call
// needs.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string_view>

#include "interpose/format/ranges.h"

namespace tprof::marks {

// The attributes that the program gave besides the name. `values` and `amounts` are valid if
// `given` says so.
struct Attributes {
  std::uint8_t given = 0;
  RangeAttributes values{};
  RangeAmounts amounts{};
  std::uint64_t at_ns = 0;  // CLOCK_MONOTONIC, when it began; 0: now
  bool counts = false;      // has totals by its name in the ledger: a scope
  bool on_stream = false;   // its device time is that of `stream`, if calls are timed
  CUstream stream = nullptr;
};

// The end of a range. `name`: the innermost range of that name ends; empty: of any name. `amounts`
// are added to those that it began with. `error` is the type of the exception that left it; empty:
// none. `took_ns` gets how long it was, if that is recorded.
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
// False: no range is open that this could end.
bool pop(std::uint8_t domain, const End& end = {});

// Returns a number for end(), which any thread may call. 0: the range is not kept.
std::uint64_t start(std::uint8_t domain, std::string_view name, const Attributes& attributes = {});
// False: it has ended before, or never began. (True for 0, and for what another process began.)
bool end(std::uint64_t number, const End& end = {});

void mark(std::uint8_t domain, std::string_view name, const Attributes& attributes = {});

void after_fork();  // in the child: what its parent has started is not its own

}  // namespace tprof::marks
