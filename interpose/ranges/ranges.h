// The program's NVTX ranges and scopes. They never start a session, and never take what a call
// needs.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string_view>

#include "interpose/format/ranges.h"

namespace tprof::ranges {

// What the program gave besides the name; `values` and `amounts` count where `given` says so.
struct Attributes {
  std::uint8_t given = 0;
  RangeAttributes values{};
  RangeAmounts amounts{};
  std::uint64_t at_ns = 0;  // CLOCK_MONOTONIC, when it began; 0: now
  bool counts = false;      // has totals by its name in the ledger: a scope
  bool on_stream = false;   // of which the device's time is that of `stream`, where calls are timed
  CUstream stream = nullptr;
};

// How one ends. `name`: the innermost of that name; empty: of any. `amounts` are added to those
// that it began with. `error`: the type of the exception that left it, empty: none. `took_ns`: how
// long it was, where that is recorded.
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
// False: none is open that it could be.
bool pop(std::uint8_t domain, const End& end = {});

// A number for end(), which any thread may call; 0: none is kept.
std::uint64_t start(std::uint8_t domain, std::string_view name, const Attributes& attributes = {});
// False: it has ended before, or never began. (Of 0, and what another process began, true.)
bool end(std::uint64_t number, const End& end = {});

void mark(std::uint8_t domain, std::string_view name, const Attributes& attributes = {});

void after_fork();  // in the child: what its parent has started is not its own

}  // namespace tprof::ranges
