#include "read/process.h"

#include <algorithm>

namespace tprof::read {
namespace {

constexpr std::uint64_t Amounts::*kSums[] = {
    &Amounts::calls,    &Amounts::count,        &Amounts::elements, &Amounts::bytes,
    &Amounts::host_ns,  &Amounts::device_ns,    &Amounts::failed,   &Amounts::unfinished,
    &Amounts::replayed, &Amounts::device_timed,
};

}  // namespace

std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kSaturated : sum;
}

Amounts& Amounts::operator+=(const Amounts& other) {
  for (const auto figure : kSums) this->*figure = saturated_sum(this->*figure, other.*figure);
  host_ns_max = std::max(host_ns_max, other.host_ns_max);
  return *this;
}

bool Amounts::saturated() const {
  return std::ranges::any_of(kSums, [&](auto figure) { return this->*figure == kSaturated; });
}

}  // namespace tprof::read
