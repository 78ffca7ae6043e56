// The calls of a rank's lines, where its ledger has others.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "read/events.h"
#include "run/known.h"

namespace tprof::diagnose {

// The key that a row of the ledger and the lines of its calls have in common.
struct CallKey {
  Bucket bucket = Bucket::ALLGATHER;
  text::Kept name;
  text::Kept dtype;
  std::optional<std::int64_t> comm;
  Mode mode = Mode::direct;

  std::uint64_t hash() const {
    return run::hash_of(static_cast<std::int64_t>(bucket), name, dtype, comm.value_or(-1),
                        static_cast<std::int64_t>(mode));
  }

  // clang-tidy 14 takes the 0 of a rewritten comparison for a pointer.
  auto operator<=>(const CallKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct CallSums {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  std::uint64_t unfinished = 0;

  bool operator==(const CallSums&) const = default;
};

// Where the ledger and the lines disagree. On nearly every rank, that is nowhere.
struct SumsOfLines {
  explicit SumsOfLines(const read::Process& rank) : rank_(rank) {}
  void call(const read::Event& e);
  void end();

  std::map<CallKey, std::pair<CallSums, CallSums>> differ{};  // sums of the ledger, of the lines

 private:
  const read::Process& rank_;
  run::Known<CallKey, CallSums> sums_{};
};

}  // namespace tprof::diagnose
