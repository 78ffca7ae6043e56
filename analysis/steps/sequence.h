// The calls of a rank in order, in which steps are searched. Each kind of operation has a number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "read/events.h"
#include "run/known.h"

namespace tprof::steps {

// The properties that all operations with one number share.
struct Symbol {
  enum class Kind : std::uint8_t { reduction, collective, p2p, copy_in };
  Kind kind = Kind::collective;
  std::string name;
  std::int64_t comm = -1;  // -1: a copy
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t given = 0;  // the rank's own bytes in an all-gather; else 0
  std::int64_t peer = -1;   // of a send or receive, as a rank of the communicator
};

struct Operation {
  std::int64_t ts_ns = 0;
  std::uint64_t seq = 0;  // number of a collective in its communicator
  std::uint32_t symbol = 0;
};

// Includes copies to the device, since batches come with them. Leaves out copies to the host, which
// occur wherever a program prints. Keeps the first kMost operations only.
class Sequence {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 22;

  void add(const read::Event& event);
  void sort();  // by time: lines of several threads are not in the order of issue

  std::vector<Symbol> symbols;
  std::vector<Operation> operations;
  bool whole = true;  // false: there were more than kMost

 private:
  struct Key {
    text::Kept name;
    std::int64_t comm;
    std::uint64_t count;
    text::Kept dtype;
    std::int64_t peer;

    std::uint64_t hash() const {
      return run::hash_of(name, comm, static_cast<std::int64_t>(count), dtype, peer);
    }
    auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  struct Number {
    std::uint32_t number = UINT32_MAX;
  };
  run::Known<Key, Number> numbers_;
};

}  // namespace tprof::steps
