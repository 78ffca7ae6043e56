#include "budget/readings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "read/error.h"
#include "stats/op_kind.h"
#include "text/text.h"

namespace tprof::budget {
namespace {

constexpr double kMoreThanOnce = 1.5;    // gradients of all parameters
constexpr std::size_t kMostAtBegin = 3;  // steps that are setup

// Ranks that hold parameters together: those of the communicator that scatters, else gathers, most.
double shards_of(const Measured& measured) {
  std::map<std::pair<bool, double>, std::int64_t> by_bytes;
  for (const auto& [key, moved] : measured.groups[0].figures) {
    if (key.bucket != Bucket::ALLGATHER && key.bucket != Bucket::RESHARDING) continue;
    by_bytes[{key.bucket == Bucket::RESHARDING, moved.bytes}] = key.nranks;
  }
  return by_bytes.empty() ? 0 : static_cast<double>(by_bytes.rbegin()->second);
}

Reading reading(Model model, Measured measured) {
  if (model.shards == 0) model.shards = shards_of(measured);
  Budget budget = of_model(model);
  Compared compared = compare(measured, budget);
  return {std::move(measured), std::move(budget), std::move(compared)};
}

// True if a step moves as much with one micro-batch as with several: DDP's with no_sync(), and that
// of sharded parameters that stay gathered.
bool moves_the_same(const Model& model) {
  Model one = model;
  one.micro_batches = 1;
  const std::vector<Expected> of_one = expected(one);
  const std::vector<Expected> of_all = expected(model);
  return std::ranges::equal(of_one, of_all, [](const Expected& a, const Expected& b) {
    return a.bytes.least == b.bytes.least;
  });
}

// Elements, the most of any rank.
double gradients(const Compared& c) {
  std::map<std::pair<Members, Bucket>, double> sums;
  for (const Row& row : c.rows) sums[{row.ranks, row.limit.bucket}] += row.moved.elements;
  double most = 0;
  for (const auto& [key, elements] : sums) {
    if (key.second == Bucket::RESHARDING) most = std::max(most, elements);
  }
  if (most > 0) return most;
  for (const auto& [key, elements] : sums) {
    if (key.second == Bucket::ALLREDUCE) most = std::max(most, elements);
  }
  return most;
}

[[noreturn]] void ask(const Model& model, const Measured& several, const Reading& each) {
  throw read::BadInput(fmt::format(
      "nothing tells whether the {} that were found are steps or micro-batches, which reduce the "
      "same gradients: {}, and if {:g} make a step, gradients are reduced {:g} times in it; "
      "--steps N says how many steps the job made",
      text::thousands(several.found),
      each.compared.within ? "if each is a step, all is within the budget"
                           : "if each is a step, gradients are reduced once in it",
      model.micro_batches, model.micro_batches));
}

// Returns of how many micro-batches a step may be, if those that were found are not alike: the one
// with the optimizer's step makes other calls than the others. Where two make a step, either may be
// taken for the usual one.
std::vector<std::size_t> sizes_of_steps(const Measured& each) {
  if (each.left_out == 0) return {2, 3, 4};  // none is usual
  const std::size_t about = (each.found + each.left_out / 2) / each.left_out;
  std::vector<std::size_t> sizes;
  for (const std::size_t n : {about, about + 1, about - 1}) {
    if (n >= 2 && n <= each.found / 2) sizes.push_back(n);
  }
  return sizes;
}

// Asks, if all is within the budget where several of those that were found make a step.
void ask_if_micro_batches(const Model& model, const Reading& each, const Measure& measure) {
  for (const std::size_t n : sizes_of_steps(each.measured)) {
    Model of = model;
    of.micro_batches = static_cast<double>(n);
    const Reading together = reading(of, measure(n));
    if (!together.compared.within || together.measured.left_out > kMostAtBegin) continue;
    throw read::BadInput(fmt::format(
        "nothing tells whether the {} that were found are steps or micro-batches: if each is a "
        "step, not all is within the budget, and if {} make a step, all is; --micro-batches {} "
        "says that they do, and --steps {} that each is a step",
        text::thousands(each.measured.found), n, n, each.measured.found));
  }
}

// Returns how often one that was found would be done for the work of the budget's step: by all
// calls but those. Nullopt: these differ in that, or there are none.
std::optional<double> found_in_budgets_step(const Compared& c) {
  std::optional<double> found;
  for (const Row& row : c.rows) {
    const Range& calls = row.limit.calls;
    const double usual = is_copy(row.limit.bucket)   ? row.limit.usual
                         : calls.least == calls.most ? calls.least
                                                     : 0;
    if (stats::once_for_several(row.limit.bucket) || usual == 0 || row.moved.calls == 0) continue;
    if (found.value_or(usual / row.moved.calls) != usual / row.moved.calls) return std::nullopt;
    found = usual / row.moved.calls;
  }
  return found;
}

// Says that all is within the budget, or how not.
std::string outcome(const Compared& c) {
  if (c.within) return "all is within the budget";
  if (c.sentences.empty()) return "not all is";
  std::string why = c.sentences[0];
  if (why.ends_with('?')) why.pop_back();
  return "not all is (" + why + ")";
}

void hedge(Reading& each) {
  if (each.compared.within && each.measured.may_be_micro_batches)
    each.compared.if_steps = each.measured.found;
}

}  // namespace

Reading against(const Budget& budget, std::uint64_t micro_batches, const Measure& measure) {
  const auto with = [&](std::uint64_t n) {
    Measured measured = measure(n);
    Compared compared = compare(measured, budget);
    return Reading{std::move(measured), budget, std::move(compared)};
  };
  Reading each = with(micro_batches);
  if (!each.measured.may_be_micro_batches) return each;
  const double n = found_in_budgets_step(each.compared).value_or(0);
  if (n < 2 || n != std::floor(n) || 2 * n > static_cast<double>(each.measured.found)) {
    if (n != 1) hedge(each);
    return each;
  }
  const auto several = static_cast<std::uint64_t>(n);
  throw read::BadInput(fmt::format(
      "nothing tells whether the {0} that were found are steps or micro-batches: a step of the "
      "budget has the work of {1} of them, gradients aside; if each is a step, {2}, and if {1} "
      "make a step, {3}; --micro-batches 1 says that each is one, and --micro-batches {1} that "
      "they "
      "make one",
      text::thousands(each.measured.found), several, outcome(each.compared),
      outcome(with(several).compared)));
}

Reading against(const Model& model, const Measure& measure) {
  const auto micro_batches = static_cast<std::uint64_t>(model.micro_batches);
  Reading several = reading(model, measure(micro_batches));
  if (several.measured.may_be_micro_batches && !several.compared.within) {
    ask_if_micro_batches(model, several, measure);
  }
  hedge(several);
  if (!several.measured.may_be_steps || several.compared.within) return several;
  Reading each = reading(model, measure(1));
  const bool same = moves_the_same(model);
  if (!same) return each.compared.within ? each : several;
  // A micro-batch reduces each gradient once at most.
  if (gradients(each.compared) > kMoreThanOnce * model.params) return each;
  ask(model, several.measured, each);
}

}  // namespace tprof::budget
