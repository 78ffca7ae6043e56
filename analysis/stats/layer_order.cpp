#include "stats/layer_order.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tprof::stats {
namespace {

constexpr std::size_t kMostOrders = 64;  // only the most frequent ones are compared

using Seen = std::pair<Sizes, std::size_t>;

}  // namespace

// Compares the first way and the last: all others lie between them.
std::optional<std::vector<std::size_t>> places_in(const Sizes& part, const Sizes& whole) {
  std::vector<std::size_t> first;
  for (std::size_t i = 0; i < whole.size() && first.size() < part.size(); ++i) {
    if (whole[i] == part[first.size()]) first.push_back(i);
  }
  if (first.size() != part.size()) return std::nullopt;
  std::size_t left = part.size();
  for (std::size_t i = whole.size(); i-- > 0 && left > 0;) {
    if (whole[i] != part[left - 1]) continue;
    if (first[left - 1] != i) return std::nullopt;
    --left;
  }
  return first;
}

Sizes common_order(const std::map<Sizes, std::size_t>& times) {
  std::vector<Seen> all;
  for (const auto& [order, n] : times) {
    if (!order.empty()) all.emplace_back(order, n);
  }
  std::ranges::stable_sort(all, std::ranges::greater(), &Seen::second);
  if (all.size() > kMostOrders) all.resize(kMostOrders);
  Sizes best;
  std::size_t most = 0;
  for (const Seen& candidate : all) {
    const Sizes& order = candidate.first;
    std::size_t parts = 0;
    for (const Seen& seen : all) parts += places_in(seen.first, order) ? seen.second : 0;
    if (parts > most || (parts == most && order.size() < best.size())) {
      best = order;
      most = parts;
    }
  }
  return best;
}

std::vector<std::optional<std::size_t>> places_in_reverse(const Sizes& calls,
                                                          const Sizes& forward) {
  std::map<std::uint64_t, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < forward.size(); ++i) places[forward[i]].push_back(i);
  const auto several = [&](std::uint64_t size) {
    const auto found = places.find(size);
    return found != places.end() && found->second.size() > 1;
  };
  const std::set<std::uint64_t> here(calls.begin(), calls.end());
  std::vector<std::size_t> reversed;
  for (std::size_t i = forward.size(); i-- > 0;) {
    if (several(forward[i]) && here.contains(forward[i])) reversed.push_back(i);
  }
  std::size_t n = 0;
  bool same = true;
  for (const std::uint64_t size : calls) {
    if (!several(size)) continue;
    same = same && n < reversed.size() && forward[reversed[n]] == size;
    ++n;
  }
  same = same && n == reversed.size();
  std::vector<std::optional<std::size_t>> told(calls.size());
  n = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto found = places.find(calls[i]);
    if (found == places.end()) continue;
    if (found->second.size() == 1) {
      told[i] = found->second[0];
    } else if (same) {
      told[i] = reversed[n++];
    }
  }
  return told;
}

}  // namespace tprof::stats
