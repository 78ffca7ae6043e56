#include "steps/uneven.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace tprof::steps {
namespace {

using Kind = Symbol::Kind;
using Places = std::vector<std::size_t>;  // of reductions on one communicator

// Returns what the first 0, 1, 2, ... reductions reduce together.
std::vector<std::uint64_t> volumes(const Order& text, const Places& all) {
  std::vector<std::uint64_t> sums = {0};
  for (const std::size_t place : all) sums.push_back(sums.back() + text.symbol(place).count);
  return sums;
}

std::uint64_t volume_on(const Order& text, std::int64_t comm, std::size_t from, std::size_t to) {
  std::uint64_t sum = 0;
  for (std::size_t i = from; i < to; ++i) {
    if (text.gradient(i) && text.symbol(i).comm == comm) sum += text.symbol(i).count;
  }
  return sum;
}

// Returns how far the text, read from its end, is the same as from each place on.
Places same_from_each(const Order& text, const Places& all) {
  const std::size_t n = all.size();
  const auto at = [&](std::size_t i) { return text[all[n - 1 - i]]; };
  Places z(n, n);
  std::size_t from = 0;
  std::size_t to = 0;
  for (std::size_t i = 1; i < n; ++i) {
    z[i] = i < to ? std::min(to - i, z[i - from]) : 0;
    while (i + z[i] < n && at(z[i]) == at(i + z[i])) ++z[i];
    if (i + z[i] > to) from = i, to = i + z[i];
  }
  return z;
}

// True if a batch comes in. If none ever does, parameters must be gathered before what is reduced.
bool has_forward_pass(const Order& text, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < to; ++i) {
    if (text.data_in(i)) return true;
    if (text.any_data()) continue;
    if (text.gradient(i)) return false;
    const Symbol& s = text.symbol(i);
    if (s.kind == Kind::collective && s.bytes > kScalarBytes) return true;
  }
  return false;
}

using Counts = std::map<std::uint32_t, std::int64_t>;  // of operations by symbol

Counts minus(Counts a, const Counts& b) {
  for (const auto& [symbol, n] : b) a[symbol] -= n;
  std::erase_if(a, [](const auto& entry) { return entry.second == 0; });
  return a;
}

std::int64_t total(const Counts& counts) {
  std::int64_t sum = 0;
  for (const auto& [symbol, n] : counts) sum += n;
  return sum;
}

bool is_multiple(const Counts& counts, const Counts& of) {
  if (counts.empty() || counts.size() != of.size()) return false;
  const std::int64_t times = counts.begin()->second / of.begin()->second;
  return times > 0 && std::ranges::all_of(counts, [&](const auto& entry) {
           const auto one = of.find(entry.first);
           return one != of.end() && entry.second == times * one->second;
         });
}

// Counts what a step calls besides its gradients on this communicator, norms and flags.
Counts others(const Order& text, std::int64_t comm, std::size_t from, std::size_t to) {
  Counts counts;
  for (std::size_t i = from; i <= to; ++i) {
    const Symbol& s = text.symbol(i);
    const bool small = s.kind == Kind::reduction && !text.gradient(i);
    if (!small && !(text.gradient(i) && s.comm == comm)) ++counts[text[i]];
  }
  return counts;
}

// Returns the earliest batch from which on all calls are those of micro-batches. The calls before
// it are setup.
std::size_t first_start(const Order& text, std::int64_t comm, std::size_t end,
                        const Counts& micro_batch) {
  std::size_t start = end;
  std::size_t gradient = 0;
  while (!(text.gradient(gradient) && text.symbol(gradient).comm == comm)) ++gradient;
  Counts counts = others(text, comm, gradient, end);
  for (std::size_t i = gradient; i-- > 0;) {
    const bool first = micro_batch.contains(text[i]);
    for (const auto& [symbol, n] : others(text, comm, i, i)) counts[symbol] += n;
    if (first && (text.data_in(i) || !text.any_data()) && is_multiple(counts, micro_batch))
      start = i;
  }
  return start == end ? gradient : start;
}

// Checks that most steps consist of micro-batches that are alike, and that some have more than
// others.
std::optional<Uneven> differ_in_micro_batches(const Order& text, const Places& ends) {
  const std::int64_t comm = text.symbol(ends.back()).comm;
  std::vector<Counts> steps;  // without the first, which may differ
  for (std::size_t k = 1; k < ends.size(); ++k) {
    steps.push_back(others(text, comm, ends[k - 1] + 1, ends[k]));
  }
  const Counts least = *std::ranges::min_element(steps, {}, total);
  Counts micro_batch;
  std::map<Counts, std::size_t> times;
  for (const Counts& counts : steps) {
    ++times[counts];
    const Counts more = minus(counts, least);
    if (more.empty()) continue;
    if (micro_batch.empty() || total(more) < total(micro_batch)) micro_batch = more;
  }
  if (micro_batch.empty()) return std::nullopt;
  std::int64_t several = 0;
  for (const auto& [symbol, n] : micro_batch) several = std::gcd(several, n);
  for (auto& [symbol, n] : micro_batch) n /= several;
  const auto alike = static_cast<std::size_t>(std::ranges::count_if(
      steps, [&](const Counts& counts) { return is_multiple(counts, micro_batch); }));
  if (4 * alike < 3 * steps.size()) return std::nullopt;
  std::size_t most = 0;
  for (const auto& [counts, n] : times) most = std::max(most, n);
  const bool told = std::ranges::any_of(
      micro_batch, [&](const auto& entry) { return !text.copies_in(entry.first); });
  return Uneven{{ends, ends.size() - 2, most},
                first_start(text, comm, ends[0], micro_batch),
                told,
                2 * most >= steps.size()};
}

// Takes the last reduction of each period, for the shortest period that there is.
std::optional<Uneven> find_on(const Order& text, const Places& all) {
  const std::size_t n = all.size();
  const Places same = same_from_each(text, all);
  const std::vector<std::uint64_t> until_each = volumes(text, all);
  for (std::size_t length = 1; length * kFewestSteps <= n; ++length) {
    const std::size_t covered = std::min(n, length + same[length]);
    if (covered < length * kFewestSteps || (length == 1 && !text.any_data())) continue;
    // The part before it must be a step of its own.
    const std::uint64_t one = until_each[n] - until_each[n - length];
    std::size_t first = n - covered;
    const std::size_t until = first + length;
    while (first != 0 && first < until && until_each[first] != one) ++first;
    if (first == until) continue;
    Places ends;
    if (first != 0) ends.push_back(all[first - 1]);
    for (std::size_t end = first + length; end <= n; end += length) ends.push_back(all[end - 1]);
    std::size_t from = 0;
    const bool forward = std::ranges::all_of(ends, [&](std::size_t end) {
      const bool has = has_forward_pass(text, from, end);
      from = end + 1;
      return has;
    });
    // A longer period would be several of this one.
    return forward ? differ_in_micro_batches(text, ends) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

bool holds_two(const Order& text, const Anchor& a) {
  const std::int64_t comm = text.symbol(a.to()).comm;
  const std::uint64_t one = volume_on(text, comm, a.from(), a.to() + 1);
  for (std::size_t k = 0; k + 1 < a.at.size(); ++k) {
    if (volume_on(text, comm, a.at[k] + 1, a.at[k + 1] + 1) >= 2 * one) return true;
  }
  return false;
}

std::optional<Uneven> find_uneven(const Order& text) {
  std::map<std::int64_t, Places> by_comm;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.gradient(i)) by_comm[text.symbol(i).comm].push_back(i);
  }
  std::optional<Uneven> fewest;
  for (const auto& [comm, all] : by_comm) {
    auto found = find_on(text, all);
    if (!found || (fewest && fewest->anchor.at.size() <= found->anchor.at.size())) continue;
    fewest = std::move(found);
  }
  return fewest;
}

}  // namespace tprof::steps
