// Keeps what the metadata of a process said in the course of its run: elsewhere only its last words
// are known.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "read/lines.h"
#include "read/process.h"
#include "read/told_lines.h"

namespace tprof::run {

// A ledger is cumulative: what it once said stays. A file in which it does not contradicts itself.
struct Decreased {
  struct Counted {
    std::string function{};  // empty: all collectives of the communicator
    std::string dtype{};
    std::int64_t comm = -1;  // -1: none
    std::int64_t bytes_class = 0;
    Mode mode = Mode::direct;

    // clang-tidy 14 takes the 0 of a rewritten comparison for a pointer.
    auto operator<=>(const Counted&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  std::uint64_t offset = 0;  // of the ledger
  Counted what{};
  std::uint64_t now = 0;
  std::uint64_t before = 0;
};

// By how much the wall clock of a host was set between two anchors.
struct ClockStep {
  double size_ns = 0;  // signed; 0: none
  std::int64_t after_ns = 0;
  std::int64_t before_ns = 0;

  void keep_larger(const ClockStep& other);
};

struct Said {
  std::vector<Decreased> decreased{};
  ClockStep clock_step{};  // the largest
  // The program's scopes as of the last ledger, exact even where they have no lines. In a process
  // that holds several ranks, the first has them.
  std::vector<read::ScopeTotal> scopes{};
};

// Takes the metadata lines of one rank in their order.
class Listener {
 public:
  // `so_far`: what they have said up to this line.
  void metadata(const read::Line& line, const read::Process& so_far);
  // Throws BadInput for a ledger whose scopes can't be read.
  Said end(const read::Process& rank);

 private:
  void compare(const read::Ledger& now, std::uint64_t offset);

  Said said_;
  std::optional<read::Ledger> before_;
  std::size_t anchors_ = 0;                     // that were seen
  std::pair<std::string, std::uint64_t> last_;  // the last ledger that has scopes, and its offset
};

}  // namespace tprof::run
