// The differences that make `tprof diff` exit with 1:
//
//   LIST = ITEM {"," ITEM}      ITEM = NAME [":" NUMBER "%"]
//
// calls, elements, bytes: a count that differs, in either direction, by more than that share of
// A's. time (of a step, with what long ones add to it on average), long_steps, exposed, host,
// device, algbw, busbw: one that is worse, beyond its noise, by more than the share. slow_ranks:
// one holds up the others in B alone, for more than the share of a step. settings, versions, hosts,
// size (ranks, steps, number of hosts): they differ; no share.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "diff/compare.h"

namespace tprof::diff {

struct Rule {
  struct SlowRanks {};
  std::string name{};
  std::variant<long double Count::*, TimeChange::Of, SlowRanks, Setting::About> of{};
  double share = 0;
};

// Throws BadInput that says what was expected.
std::vector<Rule> rules_of(std::string_view text);

struct Judgement {
  std::vector<std::string> failed;   // names
  std::vector<std::string> unknown;  // of what is not known of both runs
  std::set<std::string> why;         // it is not
};

Judgement judge(const std::vector<Rule>& rules, const Diff& diff);

}  // namespace tprof::diff
