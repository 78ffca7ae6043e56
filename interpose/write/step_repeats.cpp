#include "interpose/write/step_repeats.h"

#include <algorithm>

#include "interpose/base/hash.h"

namespace tprof {

bool Repeats::ends_step(const Operation& op) {
  if (!op.collective) {
    copied_ = std::max(copied_, op.bytes);
    return false;
  }
  if (text_.size() == 2 * kMost) text_.erase_first(kMost);
  text_.push_back({op.hash, op.bytes, copied_, op.reduction, op.autograd});
  copied_ = 0;
  if (text_.failed()) return false;
  if (++since_search_ >= search_at_) find_period();
  ++since_anchor_;
  const std::size_t i = text_.size() - 1;
  if (!found_ || op.hash != anchor_.hash || i < anchor_.before) {
    if (found_ && since_anchor_ > 4 * anchor_.length + kFirstSearch) found_ = false;
    return false;
  }
  if (gram(i, anchor_.before) != anchor_.gram) return false;
  since_anchor_ = 0;
  return true;
}

bool Repeats::large(std::size_t i) const {
  const std::uint64_t bytes = text_.data()[i].bytes;
  return bytes > kScalarBytes && bytes >= largest_ / kSmallReduction;
}

bool Repeats::forward(std::size_t i) const {
  const Symbol& s = text_.data()[i];
  if (gathers_) return !s.reduction && !s.autograd && large(i);
  return s.copied > kScalarBytes && s.copied >= largest_copy_ / kSmallCopy;
}

std::uint64_t Repeats::gram(std::size_t i, std::size_t before) const {
  std::uint64_t g = 0;
  for (std::size_t k = i - before; k <= i; ++k) g = mix64(g ^ text_.data()[k].hash);
  return g;
}

void Repeats::find_period() {
  since_search_ = 0;
  search_at_ = std::max(kFirstSearch, std::min(text_.size(), kMost) / 4);
  largest_ = largest_copy_ = 0;
  for (const Symbol& s : text_) largest_ = std::max(largest_, s.reduction ? s.bytes : 0);
  if (largest_ <= kScalarBytes) return;
  std::size_t first = 0;  // everything before it is preparation
  while (!gradient(first)) ++first;
  bool autograd = false;
  std::size_t forward = 0;
  std::size_t gradients = 0;
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (i > first) largest_copy_ = std::max(largest_copy_, text_.data()[i].copied);
    const Symbol& s = text_.data()[i];
    autograd = autograd || s.autograd;
    forward += !s.reduction && !s.autograd && large(i) ? 1 : 0;
    gradients += gradient(i) ? 1 : 0;
  }
  gathers_ = autograd && 4 * forward >= gradients;
  for (const std::size_t before : kBefore) {
    Unit unit;
    if (!finest(before, unit)) continue;
    settle(unit);
    return;
  }
}

bool Repeats::finest(std::size_t before, Unit& best) {
  places_.clear();
  for (std::size_t i = before; i < text_.size(); ++i) {
    if (gradient(i)) places_.push_back({gram(i, before), static_cast<std::uint32_t>(i)});
  }
  if (places_.failed()) return false;
  std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
    return a.gram != b.gram ? a.gram < b.gram : a.at < b.at;
  });
  for (const Place* first = places_.begin(); first != places_.end();) {
    const Place* last = first;
    while (last != places_.end() && last->gram == first->gram) ++last;
    const auto times = static_cast<std::size_t>(last - first);
    Unit unit;
    if (times >= kFewest && times > best.times && usual(first, last, unit) && brings_data(unit) &&
        holds_all(unit, first, last, times)) {
      unit.times = times;
      best = unit;
    }
    first = last;
  }
  return best.times != 0;
}

std::uint64_t Repeats::sum(std::size_t from, std::size_t to) const {
  std::uint64_t sum = 0;
  for (std::size_t i = from; i <= to; ++i) sum += mix64(text_.data()[i].hash);
  return sum;
}

bool Repeats::usual(const Place* first, const Place* last, Unit& unit) const {
  constexpr std::size_t kLooked = 16;
  std::uint64_t sums[kLooked];
  const std::size_t n = std::min(static_cast<std::size_t>(last - first) - 1, kLooked);
  const Place* from = last - 1 - n;
  for (std::size_t k = 0; k < n; ++k) sums[k] = sum(from[k].at + 1, from[k + 1].at);
  std::size_t most = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const auto same = static_cast<std::size_t>(std::count(sums, sums + n, sums[k]));
    const std::size_t length = from[k + 1].at - from[k].at;
    // If two are equally frequent (an evaluation after every other step), takes the shorter.
    if (same > most || (same == most && length < unit.to - unit.from + 1)) {
      most = same;
      unit.from = from[k].at + 1;
      unit.to = from[k + 1].at;
    }
  }
  return most >= 2 && 3 * most >= n;
}

bool Repeats::brings_data(const Unit& unit) const {
  for (std::size_t i = unit.from; i <= unit.to; ++i) {
    if (forward(i)) return true;
  }
  return false;
}

bool Repeats::holds_all(const Unit& unit, const Place* first, const Place* last,
                        std::size_t times) {
  constexpr std::size_t kYoung = 16;
  constexpr std::size_t kMicroBatches = 8;
  within_.clear();
  for (std::size_t i = unit.from; i <= unit.to; ++i) within_.push_back(text_.data()[i].hash);
  std::sort(within_.begin(), within_.end());
  others_.clear();
  for (std::size_t i = first[1].at; i <= last[-1].at; ++i) {
    const std::uint64_t hash = text_.data()[i].hash;
    if (!large(i) || std::binary_search(within_.begin(), within_.end(), hash)) continue;
    if (times < kYoung) return false;
    others_.push_back({hash, static_cast<std::uint32_t>(i)});
  }
  std::sort(others_.begin(), others_.end(),
            [](const Place& a, const Place& b) { return a.gram < b.gram; });
  std::size_t n = 0;
  for (const Place* o = others_.begin(); o != others_.end(); ++o) {
    n = o != others_.begin() && o[-1].gram == o->gram ? n + 1 : 1;
    const std::size_t often = gradient(o->at) ? 3 : std::max<std::size_t>(3, times / kMicroBatches);
    if (n >= often) return false;
  }
  return !others_.failed() && !within_.failed();
}

void Repeats::settle(const Unit& unit) {
  std::size_t at = unit.to;
  std::size_t longest = 0;
  std::size_t last = unit.to;  // the previous reduction; for the first one, the unit's last
  std::size_t length = 0;      // since then
  bool data = false;
  for (std::size_t i = unit.from; i <= unit.to; ++i) {
    ++length;
    data = data || forward(i);
    if (!gradient(i)) continue;
    const std::size_t gap = 2 * length + (data ? 1 : 0);
    if (gap > longest) {
      longest = gap;
      at = last;
    }
    last = i;
    length = 0;
    data = false;
  }
  for (const std::size_t before : kBefore) {
    if (before > at) break;
    const std::uint64_t wanted = gram(at, before);
    std::size_t times = 0;
    for (std::size_t i = std::max(unit.from, before); i <= unit.to; ++i) {
      times += gram(i, before) == wanted ? 1 : 0;
    }
    if (times != 1) continue;
    if (!found_) since_anchor_ = 0;
    if (!found_) count_earlier(text_.data()[at].hash, wanted, before);
    anchor_ = {text_.data()[at].hash, wanted, before, unit.to - unit.from + 1};
    found_ = true;
    return;
  }
}

void Repeats::count_earlier(std::uint64_t hash, std::uint64_t wanted, std::size_t before) {
  earlier_ = 0;
  for (std::size_t i = before; i + 1 < text_.size(); ++i) {
    earlier_ += text_.data()[i].hash == hash && gram(i, before) == wanted ? 1 : 0;
  }
}

}  // namespace tprof
