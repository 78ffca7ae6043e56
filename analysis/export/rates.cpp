#include "export/rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "export/call_names.h"

namespace tprof::trace_export {
namespace {

// The job's ledgers say how long it is; what comes far behind that has no rate.
constexpr std::int64_t kMostWindows = 4096;

}  // namespace

void add(std::vector<InWindow>& all, const InWindow& more) {
  constexpr std::size_t kLast = 16;
  const auto end = all.size() > kLast ? all.rbegin() + kLast : all.rend();
  const auto same = std::find_if(all.rbegin(), end, [&](const InWindow& w) {
    return w.window == more.window && w.bucket == more.bucket && w.pid == more.pid;
  });
  if (same == end) return all.push_back(more);
  same->bytes += more.bytes;
}

void Rates::add(const std::vector<InWindow>& all) {
  for (const InWindow& w : all) {
    if (w.window < 0 || w.window >= kMostWindows || w.bytes == 0) continue;
    auto& bytes = ranks_[w.pid][static_cast<std::size_t>(w.bucket)];
    const auto i = static_cast<std::size_t>(w.window);
    if (bytes.size() <= i) bytes.resize(i + 1);
    bytes[i] += w.bytes;
  }
}

void Rates::write(std::int64_t pid, Pen& out) const {
  const auto of = ranks_.find(pid);
  if (of == ranks_.end()) return;
  std::size_t windows = 0;
  for (const auto& bytes : of->second) windows = std::max(windows, bytes.size());
  std::string before;
  for (std::size_t i = 0; i <= windows; ++i) {  // the last one ends all rates
    std::string rates;
    for (std::size_t b = 0; b < kBucketCount; ++b) {
      const auto& bytes = of->second[b];
      if (bytes.empty()) continue;
      const double in_window = i < bytes.size() ? static_cast<double>(bytes[i]) : 0;
      fmt::format_to(std::back_inserter(rates), "{}\"{}\":{}", rates.empty() ? "" : ",",
                     title_of(static_cast<Bucket>(b)),
                     in_window * 1e9 / static_cast<double>(window_ns_));
    }
    if (rates == before) continue;
    (out.line() << "{\"cat\":\"LANE\",\"name\":\"bytes/s\",\"ph\":\"C\",\"pid\":" << pid
                << ",\"tid\":0,\"ts\":")
            .micros(static_cast<std::int64_t>(i) * window_ns_)
        << ",\"args\":{" << rates << "}}";
    before = std::move(rates);
  }
}

}  // namespace tprof::trace_export
