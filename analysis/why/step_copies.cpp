#include "why/step_copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "check/names.h"
#include "why/numbers.h"

namespace tprof::why {

using check::Bytes;
using check::Say;

namespace {

constexpr double kMore = 1.3;          // times
constexpr double kLeastOut = 1 << 20;  // bytes of a checkpoint; losses and metrics are smaller
constexpr double kLeastSent = 1 << 20;
constexpr double kLeastIn = 1 << 10;  // bytes of a batch

// Returns the bytes that a rank copies in each of these steps.
std::vector<double> of_steps(const Evidence& e, std::size_t rank, float Cell::*copied,
                             const std::vector<std::size_t>& places) {
  std::vector<double> all;
  for (const std::size_t i : places) all.push_back(e.times.of(rank)[e.steps[i]].*copied);
  return all;
}

}  // namespace

void tell_copies_of_steps(const Evidence& e, const std::vector<std::size_t>& ranks,
                          const std::vector<std::size_t>& steps, check::Finding& f) {
  std::vector<std::size_t> others = every_step(e);
  std::erase_if(others, [&](std::size_t i) { return std::ranges::binary_search(steps, i); });
  if (others.empty()) return;
  const auto look = [&](Say say, float Cell::*copied, double least) {
    const auto more_of = [&](std::size_t r) {
      const double there = median(of_steps(e, r, copied, steps));
      const double elsewhere = median(of_steps(e, r, copied, others));
      return there < kMore * elsewhere ? 0.0 : there - elsewhere;
    };
    check::Processes who;
    double most = 0;
    std::vector<double> of_others;
    for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
      const double more = more_of(r);
      if (!std::ranges::binary_search(ranks, r)) {
        of_others.push_back(more);
      } else if (more >= least) {
        who.push_back(e.times.ranks[r]);
        most = std::max(most, more);
      }
    }
    // If all ranks copy more, that does not explain these.
    if (who.empty() || median(std::move(of_others)) * 2 > most) return;
    f.evidence.push_back({say,
                          {{"who", check::Who(who)},
                           {"one", who.size() == 1},
                           {"bytes", Bytes{static_cast<std::uint64_t>(std::llround(most))}}}});
  };
  look(Say::copies_out_more, &Cell::to_host, kLeastOut);
  look(Say::sends_more, &Cell::sent, kLeastSent);
  look(Say::copies_in_more, &Cell::to_device, kLeastIn);
}

void tell_copies_of_ranks(const Evidence& e, const std::vector<std::size_t>& ranks, bool batches,
                          check::Finding& f) {
  // A longer batch takes the device longer, a checkpoint the host. A checkpoint is not in every
  // step.
  std::vector<double> others;
  double least = std::numeric_limits<double>::max();
  for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
    const std::vector<double> copied =
        of_steps(e, r, batches ? &Cell::to_device : &Cell::to_host, every_step(e));
    const double bytes = batches ? median(copied) : mean(copied);
    if (std::ranges::binary_search(ranks, r)) {
      least = std::min(least, bytes);
    } else {
      others.push_back(bytes);
    }
  }
  const double as_others = median(std::move(others));
  const double more = least - as_others;
  if (least < kMore * as_others || (batches ? as_others < kLeastIn : more < kLeastOut)) return;
  f.evidence.push_back(
      {batches ? Say::copies_in_times : Say::copies_out_each,
       {{"one", ranks.size() == 1},
        {"times", batches ? fmt::format("{:.1f}", least / as_others) : ""},
        {"bytes", Bytes{static_cast<std::uint64_t>(std::llround(std::max(more, 0.0)))}}}});
}

}  // namespace tprof::why
