#include "tables/spread.h"

#include <algorithm>
#include <cmath>

#include "read/process.h"

namespace tprof::tables {

void Spread::add_shares(std::uint64_t ns, std::uint64_t calls) {
  if (calls == 0) return;
  Spread equal;
  equal.count = calls;
  equal.total_ns = ns;
  equal.min_ns = equal.max_ns = ns / calls;
  equal.mean_ns = static_cast<double>(ns) / static_cast<double>(calls);
  add(equal);
}

void Spread::add(const Spread& other) {
  if (other.count == 0) return;
  min_ns = count == 0 ? other.min_ns : std::min(min_ns, other.min_ns);
  max_ns = std::max(max_ns, other.max_ns);
  total_ns = read::saturated_sum(total_ns, other.total_ns);
  const auto n = static_cast<double>(count);
  const auto m = static_cast<double>(other.count);
  const double distance = other.mean_ns - mean_ns;
  mean_ns += distance * m / (n + m);
  squares_ += other.squares_ + distance * distance * n * m / (n + m);
  count += other.count;
}

void Spread::set_sums(std::uint64_t n, std::uint64_t sum_ns, std::uint64_t longest_ns) {
  *this = {};
  count = n;
  total_ns = sum_ns;
  max_ns = longest_ns;
  if (n != 0) mean_ns = static_cast<double>(sum_ns) / static_cast<double>(n);
}

double Spread::std_ns() const {
  return count == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(count));
}

}  // namespace tprof::tables
