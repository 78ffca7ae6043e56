// Reads what a ledger line says of the program's scopes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tprof::read {

// The scopes of one name and category that ended.
struct ScopeTotal {
  std::string name;
  std::string category;  // empty: none
  std::uint64_t count = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t max_ns = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  std::uint64_t errors = 0;
  std::uint64_t device_timed = 0;  // of `count`: those that have a time on the device
  std::uint64_t device_ns = 0;
  std::map<std::uint64_t, std::uint64_t> bins{};  // counts, by the bin's shortest duration
};
void add(ScopeTotal& to, const ScopeTotal& more);

// Throws Malformed.
std::vector<ScopeTotal> scopes_of(std::string_view ledger_line);

}  // namespace tprof::read
