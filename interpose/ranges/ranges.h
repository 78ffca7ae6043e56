// The program's NVTX ranges. They never start a session, and never take what a call needs.
#pragma once

#include <cstdint>
#include <string_view>

#include "interpose/format/ranges.h"

namespace tprof::ranges {

// What the program gave besides the name; `values` count where `given` says so.
struct Attributes {
  std::uint8_t given = 0;
  RangeAttributes values{};
};

// `name`: at most kMaxRangeName bytes. Budget of a push and its pop: two clock reads (44 ns) + 40
// ns.
void push(std::uint8_t domain, std::string_view name, const Attributes& attributes = {});
void pop(std::uint8_t domain);

// A number for end(), which any thread may call; 0: none is kept.
std::uint64_t start(std::uint8_t domain, std::string_view name, const Attributes& attributes = {});
void end(std::uint64_t number);

void mark(std::uint8_t domain, std::string_view name, const Attributes& attributes = {});

void after_fork();  // in the child: what its parent has started is not its own

}  // namespace tprof::ranges
