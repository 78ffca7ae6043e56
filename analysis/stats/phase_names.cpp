#include "stats/phase_names.h"

#include <algorithm>
#include <string>
#include <vector>

#include "interpose/format/ranges.h"
#include "text/text.h"

namespace tprof::stats {
namespace {

constexpr std::string_view kForward[] = {"forward", "fwd"};
constexpr std::string_view kBackward[] = {"backward", "bwd"};
// A name of one word has to be one of these. With a word of kUpdates, any word may end in one.
constexpr std::string_view kOptimizer[] = {"optimizer", "optimiser", "optim"};
constexpr std::string_view kUpdates[] = {"step", "update"};
constexpr std::string_view kLoad[] = {"dataloader", "dataloading"};
constexpr std::string_view kLoadPairs[][2] = {
    {"batch", "generator"}, {"get", "batch"},  {"load", "data"},  {"data", "loading"},
    {"data", "load"},       {"load", "batch"}, {"next", "batch"}, {"data", "loader"}};

template <typename Words>
bool any(const std::vector<std::string>& words, const Words& of) {
  return std::ranges::any_of(
      words, [&](const std::string& w) { return std::ranges::find(of, w) != std::end(of); });
}

bool is_optimizer(const std::vector<std::string>& words) {
  if (words.size() == 1) return any(words, kOptimizer);
  const bool named = std::ranges::any_of(words, [](const std::string& w) {
    return std::ranges::any_of(kOptimizer,
                               [&](std::string_view end) { return w.ends_with(end); }) ||
           w == "deepspeedengine";
  });
  return named && any(words, kUpdates);
}

bool is_load(const std::vector<std::string>& words) {
  if (any(words, kLoad)) return true;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    for (const auto& pair : kLoadPairs) {
      if (words[i] == pair[0] && words[i + 1] == pair[1]) return true;
    }
  }
  return false;
}

}  // namespace

std::optional<StepPhase> phase_of_name(std::string_view name) {
  const std::vector<std::string> words = text::words(name);
  const bool forward = any(words, kForward);
  const bool backward = any(words, kBackward);
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

}  // namespace tprof::stats
