#include "budget/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "read/error.h"
#include "tables/steps.h"
#include "text/text.h"

namespace tprof::budget {
namespace {

constexpr std::size_t kMostAtBegin = 3;  // steps that are setup

// Returns how many ranks share the parameters: those of the communicator that scatters most, or
// else gathers most.
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
  Compared compared = compare(measured, of_model(model));
  return {std::move(measured), std::move(compared)};
}

// True if a step moves the same with one micro-batch as with several: DDP with no_sync(), and
// sharded parameters that stay gathered.
bool moves_the_same(const Model& model) {
  Model one = model;
  one.micro_batches = 1;
  return std::ranges::equal(
      expected(one), expected(model), {}, [](const Limit& limit) { return limit.bytes.least; },
      [](const Limit& limit) { return limit.bytes.least; });
}

// Says that everything is within the budget, or what is not.
std::string outcome(const Compared& c) {
  if (c.within) return "everything is within the budget";
  if (c.sentences.empty()) return "not everything is";
  std::string why = c.sentences[0];
  if (why.ends_with('?')) why.pop_back();
  return "not everything is (" + why + ")";
}

// `known`: what is known about them; `how`: the options that decide.
[[noreturn]] void ask(const Reading& each, const Reading& several, double n,
                      const std::string& known, const std::string& how) {
  throw read::BadInput(
      fmt::format("it is unclear whether the {} repeats are steps or micro-batches{}: if each is a "
                  "step, {}; if {:g} make a step, {}; {}",
                  text::thousands(each.measured.found), known, outcome(each.compared), n,
                  outcome(several.compared), how));
}

std::string options_for(const Reading& each, double n) {
  return fmt::format(
      "--micro-batches {:g} says that these make a step, --steps {} that each is a step", n,
      each.measured.found);
}

// Returns how many micro-batches a step may have if the found ones differ: the one with the
// optimizer's step makes other calls. If two make a step, either may count as the usual one.
std::vector<std::size_t> sizes_of_steps(const Measured& each) {
  if (each.left_out == 0) return {2, 3, 4};  // no step is usual
  const std::size_t about = (each.found + each.left_out / 2) / each.left_out;
  std::vector<std::size_t> sizes;
  for (const std::size_t n : {about, about + 1, about - 1}) {
    if (n >= 2 && n <= each.found / 2) sizes.push_back(n);
  }
  return sizes;
}

// Returns how many of the found steps have the work of the budget's step, according to all calls
// except those made once for several. Nullopt: calls disagree, or there are none.
std::optional<double> found_in_budgets_step(const Compared& c) {
  std::optional<double> found;
  for (const Row& row : c.rows) {
    const Range& calls = row.limit.calls;
    const double usual = is_copy(row.limit.bucket)   ? row.limit.usual
                         : calls.least == calls.most ? calls.least
                                                     : 0;
    if (tables::once_for_several(row.limit.bucket) || usual == 0 || row.moved.calls == 0) continue;
    if (found.value_or(usual / row.moved.calls) != usual / row.moved.calls) return std::nullopt;
    found = usual / row.moved.calls;
  }
  return found;
}

// Adds the condition that the found ones are steps, if that is unclear.
Reading hedged(Reading each) {
  if (each.compared.within && each.measured.may_be_micro_batches)
    each.compared.if_steps = each.measured.found;
  return each;
}

}  // namespace

Reading against(const Budget& budget, std::uint64_t micro_batches, const Measure& measure) {
  const auto with = [&](std::uint64_t n) {
    Measured measured = measure(n);
    Compared compared = compare(measured, budget);
    return Reading{std::move(measured), std::move(compared)};
  };
  Reading each = with(micro_batches);
  const double n = found_in_budgets_step(each.compared).value_or(0);
  if (!each.measured.may_be_micro_batches || n == 1) return each;
  if (n < 2 || n != std::floor(n) || 2 * n > static_cast<double>(each.measured.found)) {
    return hedged(std::move(each));
  }
  ask(each, with(static_cast<std::uint64_t>(n)), n,
      fmt::format(" (a step of the budget has the work of {:g} of them, except for gradients)", n),
      options_for(each, n));
}

Reading against(const Model& model, const Measure& measure) {
  Reading asked = reading(model, measure(static_cast<std::uint64_t>(model.micro_batches)));
  if (asked.compared.within) return hedged(std::move(asked));
  if (asked.measured.may_be_micro_batches) {
    for (const std::size_t n : sizes_of_steps(asked.measured)) {
      Model of = model;
      of.micro_batches = static_cast<double>(n);
      const Reading several = reading(of, measure(n));
      if (!several.compared.within || several.measured.left_out > kMostAtBegin) continue;
      ask(asked, several, of.micro_batches, "", options_for(asked, of.micro_batches));
    }
  }
  if (!asked.measured.may_be_steps) return asked;
  Reading each = reading(model, measure(1));
  const bool same = moves_the_same(model);
  if (same && each.compared.within) {
    ask(each, asked, model.micro_batches, ", which reduce the same gradients",
        "--steps N says how many steps the job made");
  }
  return same || each.compared.within ? each : asked;
}

}  // namespace tprof::budget
