#include "filter/calls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "read/error.h"

namespace tprof::filter {
namespace {

using read::Process;

constexpr std::size_t kMostNamed = 40;  // in an error

std::string listed(const std::set<std::string>& names) {
  if (names.size() <= kMostNamed) return fmt::format("{}", fmt::join(names, ", "));
  const std::vector<std::string> first(names.begin(), std::next(names.begin(), kMostNamed));
  return fmt::format("{} and {} more", fmt::join(first, ", "), names.size() - kMostNamed);
}

void require_ops(const std::vector<std::string>& ops, const job::Job& job) {
  std::set<std::string> buckets;
  std::set<std::string> functions;
  for (const Process* p : job.processes) {
    for (const read::Row& row : read::rows_of(*p)) {
      buckets.emplace(bucket_name(row.bucket));
      functions.insert(row.name);
    }
  }
  for (const std::string& op : ops) {
    const auto same = [&](const std::string& name) { return matches(op, name); };
    if (std::ranges::any_of(buckets, same) || std::ranges::any_of(functions, same)) continue;
    buckets.merge(functions);
    throw read::BadInput(
        fmt::format("--ops: no call is named '{}'; the job has {}", op,
                    buckets.empty() ? "no ledger that names any" : listed(buckets)));
  }
}

// The number that the tables of `tprof export` and the lines have for a communicator.
std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t n = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, n);
  const bool whole = error == std::errc() && rest == end && n >= 0;
  return whole ? std::optional(n) : std::nullopt;
}

// A name or a whole id comes before a number, and that before the beginning of an id.
enum class Fit { no, begins, number, same };

Fit fit(const std::string& word, const read::Comm& comm) {
  const bool known = comm.known();
  if ((comm.name && matches(word, *comm.name)) || (known && matches(word, comm.id.str()))) {
    return Fit::same;
  }
  if (number_of(word) == comm.comm) return Fit::number;
  return known && comm.id.str().starts_with(word) ? Fit::begins : Fit::no;
}

}  // namespace

Calls::Calls(const Filter& filter, const job::Job& job) : filter_(filter) {
  require_ops(filter.ops, job);
  for (const std::string& word : filter.comms) {
    Fit best = Fit::no;
    std::set<std::string> there;
    const auto each = [&](const auto& see) {
      for (const Process* p : job.processes) {
        for (const auto& [number, comm] : p->comms) see(*p, comm, fit(word, comm));
      }
    };
    each([&](const Process&, const read::Comm& comm, Fit how) {
      best = std::max(best, how);
      there.insert(comm.name ? comm.id.str() + " (" + *comm.name + ")" : comm.id.str());
    });
    if (best == Fit::no) {
      throw read::BadInput(fmt::format(
          "--comm: no communicator has the name, the id or the number '{}'; the job has "
          "{}",
          word, there.empty() ? "none" : listed(there)));
    }
    each([&](const Process& p, const read::Comm& comm, Fit how) {
      if (how == best) comms_[&p].insert(comm.comm);
    });
  }
}

bool Calls::named(const Process& rank, Bucket bucket, std::string_view name,
                  const std::optional<std::int64_t>& comm) const {
  const auto same = [&](const std::string& op) {
    return matches(op, name) || matches(op, bucket_name(bucket));
  };
  if (!filter_.ops.empty() && std::ranges::none_of(filter_.ops, same)) return false;
  return filter_.comms.empty() || (comm && on(rank, *comm));
}

bool Calls::on(const Process& rank, std::int64_t comm) const {
  if (filter_.comms.empty()) return true;
  const auto of_rank = comms_.find(&rank);
  return of_rank != comms_.end() && of_rank->second.contains(comm);
}

bool Calls::size(std::uint64_t bytes) const {
  return filter_.sizes.empty() ||
         std::ranges::any_of(filter_.sizes, [&](const Sizes& s) { return s.holds(bytes); });
}

Holds Calls::row(const Process& rank, const read::Row& row) const {
  if (!named(rank, row.bucket, row.name, row.comm)) return Holds::no;
  if (filter_.sizes.empty()) return Holds::yes;
  // A call of the row is at least as large as its class says, and less than twice that. They are
  // all of the least size if their sum is, and the size of one call is its sum.
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  if (row.bytes_class >= 0) {
    least = std::uint64_t{1} << static_cast<unsigned>(std::min<std::int64_t>(row.bytes_class, 63));
    most = least - 1 + least;
  }
  const read::Amounts& a = row.amounts;
  if (!a.saturated() && a.calls == 1) least = most = a.bytes;
  if (!a.saturated() && a.calls != 0 && a.bytes / a.calls == least && a.bytes % a.calls == 0) {
    most = least;
  }
  Holds holds = Holds::no;
  for (const Sizes& s : filter_.sizes) {
    if (s.least <= least && most <= s.most) return Holds::yes;
    if (s.least <= most && least <= s.most) holds = Holds::some;
  }
  return holds;
}

bool Calls::moment(const Process& rank, std::int64_t thread, std::int64_t ts_ns) const {
  if (found != nullptr && !stats::in_steps(filter_.steps, *found, rank, ts_ns)) return false;
  if (phases == nullptr) return true;
  const stats::RankPhases* of_rank = phases->of(&rank);
  return filter_.phases.contains(of_rank == nullptr ? stats::StepPhase::other
                                                    : of_rank->at(thread, ts_ns));
}

bool Calls::launch(const Process& rank, const read::Event& e) const {
  return filter_.ops.empty() && filter_.sizes.empty() && filter_.comms.empty() &&
         moment(rank, e.thread, e.ts_ns);
}

bool Calls::call(const Process& rank, const read::Event& e) const {
  return named(rank, e.bucket, e.name, e.comm) && size(e.bytes) && moment(rank, e.thread, e.ts_ns);
}

bool Calls::time(const Process& rank, const read::DeviceTime& t) const {
  const std::int64_t begun_ns = t.ts_ns - t.queued_ns;
  if (!moment(rank, t.thread, begun_ns)) return false;
  if (needs_begun()) {
    if (t.launch || begun == nullptr) return false;
    const auto of_rank = begun->find(&rank);
    return of_rank != begun->end() && of_rank->second.contains({begun_ns, t.thread});
  }
  return filter_.comms.empty() || (t.comm && on(rank, *t.comm));
}

}  // namespace tprof::filter
