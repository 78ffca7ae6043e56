#include "tables/phase_names.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "interpose/format/ranges.h"
#include "text/text.h"

namespace tprof::tables {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kOptimizers[] = {"optimizer", "optimiser", "optim"};
constexpr std::pair<std::string_view, std::string_view> kLoads[] = {
    {"batch", "generator"}, {"get", "batch"},  {"load", "data"},  {"data", "loading"},
    {"data", "load"},       {"load", "batch"}, {"next", "batch"}, {"data", "loader"}};

template <std::size_t n>
bool any(const Words& words, const std::string_view (&of)[n]) {
  return std::ranges::find_first_of(words, of) != words.end();
}

// A name of one word has to be one of these. With a step or an update, any word may end in one.
bool is_optimizer(const Words& words) {
  if (words.size() == 1) return any(words, kOptimizers);
  const bool named = std::ranges::any_of(words, [&](const std::string& w) {
    return w == "deepspeedengine" ||
           std::ranges::any_of(kOptimizers, [&](std::string_view end) { return w.ends_with(end); });
  });
  return named && any(words, {"step", "update"});
}

bool is_load(const Words& words) {
  const auto next_to = [](const auto& pair) {
    return [&pair](const std::string& a, const std::string& b) {
      return a == pair.first && b == pair.second;
    };
  };
  return any(words, {"dataloader", "dataloading"}) ||
         std::ranges::any_of(kLoads, [&](const auto& pair) {
           return std::ranges::adjacent_find(words, next_to(pair)) != words.end();
         });
}

}  // namespace

std::optional<StepPhase> phase_of_name(std::string_view name) {
  const Words words = text::words(name);
  const bool forward = any(words, {"forward", "fwd"});
  const bool backward = any(words, {"backward", "bwd"});
  if (forward && backward) return std::nullopt;  // it covers both, one after the other
  if (forward) return StepPhase::forward;
  if (backward) return StepPhase::backward;
  if (is_optimizer(words)) return StepPhase::optimizer;
  if (is_load(words)) return StepPhase::load;
  return std::nullopt;
}

std::optional<StepPhase> phase_of_range(const read::Range& range) {
  if (range.domain != kScopeDomain || range.category_name != kScopePhase) {
    return phase_of_name(range.name);
  }
  const auto* said = std::ranges::find(kStepPhaseNames, range.name);
  if (said == std::end(kStepPhaseNames)) return std::nullopt;
  return static_cast<StepPhase>(said - kStepPhaseNames);
}

}  // namespace tprof::tables
