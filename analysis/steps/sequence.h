// What a rank called, in order, as steps are found in it: a number for each kind of operation.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "read/events.h"

namespace tprof::steps {

// What is the same for all operations of one number.
struct Symbol {
  enum class Kind : std::uint8_t { reduction, collective, p2p, copy_in };
  Kind kind = Kind::collective;
  std::string name;
  std::int64_t comm = -1;  // -1: a copy
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t given = 0;  // bytes of its own that a rank gives an all-gather; else 0
};

struct Operation {
  std::int64_t ts_ns = 0;
  std::uint64_t seq = 0;  // of a collective in its communicator
  std::uint32_t symbol = 0;
};

// Copies to the device are in it: a batch of data comes in with one. Copies back are not: they are
// where a program prints. Bounded: what comes behind kMost is not looked at.
class Sequence {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 22;

  void add(const read::Event& event);
  void sort();  // by time: lines of several threads are not in the order of issue

  std::vector<Symbol> symbols;
  std::vector<Operation> operations;
  bool whole = true;  // false: there were more than kMost

 private:
  std::map<std::tuple<std::string, std::int64_t, std::uint64_t, std::string, std::int64_t>,
           std::uint32_t>
      numbers_;
};

}  // namespace tprof::steps
