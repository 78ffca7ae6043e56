#include "why/cause.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tprof::why {
namespace {

Places first_places(std::size_t n) {
  Places all(n);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

std::int64_t number_of(const Evidence& e, std::size_t place) {
  return e.times.steps[e.steps[place]];
}

}  // namespace

Places every_step(const Evidence& e) {
  return first_places(e.steps.size());
}

Places every_rank(const Evidence& e) {
  return first_places(e.times.ranks.size());
}

check::Processes processes_of(const Evidence& e, const Places& ranks) {
  check::Processes all;
  for (const std::size_t r : ranks) all.push_back(e.times.ranks[r]);
  return all;
}

text::Ranks steps_of(const Evidence& e, const std::vector<std::size_t>& places) {
  std::vector<std::int64_t> numbers;
  for (const std::size_t i : places) numbers.push_back(number_of(e, i));
  return text::Ranks(std::move(numbers));
}

std::string first_numbers_of(const Evidence& e, const std::vector<std::size_t>& places) {
  constexpr std::ptrdiff_t kMost = 8;
  std::string text = steps_of(e, places).str();
  std::size_t end = 0;
  for (std::ptrdiff_t n = 0; n < kMost && end != std::string::npos; ++n) {
    end = text.find(',', end + 1);
  }
  if (end != std::string::npos) text.replace(end + 1, std::string::npos, "…");
  return text;
}

std::size_t period_of(const Evidence& e, const std::vector<std::size_t>& places) {
  const std::size_t all = e.steps.size();
  if (places.size() < 3) return 0;
  const std::int64_t numbers = number_of(e, all - 1) - number_of(e, 0) + 1;
  if (numbers != static_cast<std::int64_t>(all)) return 0;
  const std::size_t n = places[1] - places[0];
  if (places.front() >= n || places.back() + n + 1 < all) return 0;
  for (std::size_t i = 1; i < places.size(); ++i) {
    if (places[i] - places[i - 1] != n) return 0;
  }
  return n > 1 ? n : 0;
}

check::Cost cost_of(const Evidence& of, double ns, double doubt_ns) {
  const auto steps = static_cast<double>(of.times.steps_of_run);
  return {.ns = std::llround(ns * steps),
          .doubt_ns = std::llround(doubt_ns * steps),
          .share = ns / of.step_ns,
          .ns_per_step = std::llround(ns)};
}

bool sends(const Evidence& e, std::size_t rank) {
  // Messages are counted in all steps, but only some steps are kept, and only some of these count.
  return e.times.facts[rank].messages * 2 * e.times.steps.size() >
         e.steps.size() * e.times.steps_of_run;
}

}  // namespace tprof::why
