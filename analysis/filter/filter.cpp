#include "filter/filter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <utility>

#include "interpose/format/settings.h"
#include "read/error.h"
#include "tables/comms.h"
#include "text/text.h"

namespace tprof::filter {

namespace {

std::vector<std::string> split(const char* option, std::string_view list) {
  const std::vector<std::string_view> parts = text::split(list, ',');
  if (std::ranges::none_of(parts, &std::string_view::empty)) return {parts.begin(), parts.end()};
  throw read::BadInput(
      fmt::format("{}: expected names separated by commas, found '{}'", option, list));
}

std::pair<std::int64_t, std::int64_t> range_of(std::string_view item, std::string_view list) {
  const auto number = [](std::string_view text, std::int64_t& to) {
    const auto n = text::number<std::int64_t>(text);
    to = n.value_or(-1);
    return to >= 0;
  };
  std::pair<std::int64_t, std::int64_t> r(0, INT64_MAX);
  if (!item.starts_with('-') && parse_borders(item, r.first, r.second, number)) return r;
  throw read::BadInput(fmt::format("--steps: expected 10-, 3-7, 5 or 3,5-7, found '{}'", list));
}

tables::StepPhase phase_of(const std::string& name) {
  const auto* known = std::ranges::find(tables::kStepPhaseNames, name);
  if (known != std::end(tables::kStepPhaseNames)) {
    return static_cast<tables::StepPhase>(known - tables::kStepPhaseNames);
  }
  throw read::BadInput(fmt::format("--phase: expected {}, found '{}'",
                                   fmt::join(tables::kStepPhaseNames, ", "), name));
}

using read::Process;

constexpr std::size_t kMostNamed = 40;  // in an error message

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

// Best first, from the right: a name or whole id, the communicator's number in lines and in the
// tables of `tprof export`, its role, the beginning of its id.
enum class Fit { no, begins, role, number, same };

Fit fit(const std::string& word, const read::Comm& comm, const std::string& role) {
  if ((comm.name && matches(word, *comm.name)) || (comm.known() && matches(word, comm.id.str()))) {
    return Fit::same;
  }
  if (word == std::to_string(comm.comm)) return Fit::number;
  if (tables::asks_for(word, role)) return Fit::role;
  return comm.known() && comm.id.str().starts_with(word) ? Fit::begins : Fit::no;
}

}  // namespace

bool Words::of_calls() const {
  return !(steps.empty() && ops.empty() && sizes.empty() && comms.empty() && phases.empty());
}

std::vector<std::pair<const char*, std::string>> Words::given() const {
  std::vector<std::pair<const char*, std::string>> all = {{"ranks", ranks}, {"steps", steps},
                                                          {"ops", ops},     {"sizes", sizes},
                                                          {"comm", comms},  {"phase", phases}};
  std::erase_if(all, [](const auto& one) { return one.second.empty(); });
  return all;
}

std::string Words::sentence(std::string_view before_merged) const {
  std::string all = merged.empty() ? "" : std::string(before_merged) + merged;
  const char* before = all.empty() ? "only " : "; only ";
  for (const auto& [name, value] : given()) {
    const bool one = value.find_first_of(",-") == std::string::npos;
    std::string_view shown = name;
    if (one && (shown == "ranks" || shown == "steps")) shown.remove_suffix(1);
    all += fmt::format("{}{} {}", std::exchange(before, ", "), shown, value);
  }
  return all;
}

bool is_listed(std::string_view ranks, std::int64_t rank) {
  bool found = false;
  const bool is_list = each_range(ranks, [&](std::int64_t first, std::int64_t last) {
    found = found || (first <= rank && rank <= last);
  });
  if (is_list) return found;
  throw read::BadInput(fmt::format("--ranks: expected ranks such as 0-3,7, found '{}'", ranks));
}

Filter parsed(const Words& words) {
  Filter f{.words = words};
  if (!words.ranks.empty()) is_listed(words.ranks, 0);
  if (!words.steps.empty()) {
    f.steps.emplace().ranges.clear();
    for (const std::string& item : split("--steps", words.steps)) {
      f.steps->ranges.push_back(range_of(item, words.steps));
    }
  }
  if (!words.ops.empty()) f.ops = split("--ops", words.ops);
  if (!words.sizes.empty()) {
    if (!each_sizes(words.sizes, [&](const Sizes& sizes) { f.sizes.push_back(sizes); })) {
      throw read::BadInput(fmt::format(
          "--sizes: expected bytes of a call such as 1M-64M, 64K-, -4K or 32768, found '{}'",
          words.sizes));
    }
  }
  if (!words.comms.empty()) f.comms = split("--comm", words.comms);
  if (!words.phases.empty()) {
    for (const std::string& name : split("--phase", words.phases)) f.phases.insert(phase_of(name));
  }
  return f;
}

Calls::Calls(const Filter& filter, const job::Job& job) : filter_(filter) {
  require_ops(filter.ops, job);
  std::map<std::string, std::string> roles;
  if (!filter.comms.empty()) roles = tables::role_texts(tables::communicators(job, {}));
  for (const std::string& word : filter.comms) {
    std::map<Fit, std::vector<std::pair<const Process*, std::int64_t>>> fits;
    std::set<std::string> there;
    for (const Process* p : job.processes) {
      for (const auto& [number, comm] : p->comms) {
        const std::string& role = roles[comm.id.str()];
        fits[fit(word, comm, role)].emplace_back(p, comm.comm);
        const std::string& called = comm.name ? comm.name->str() : role;
        there.insert(comm.id.str() + (called.empty() ? "" : " (" + called + ")"));
      }
    }
    if (fits.empty() || fits.rbegin()->first == Fit::no) {
      throw read::BadInput(fmt::format(
          "--comm: no communicator has the name, the id, the number or the role '{}'; the job has "
          "{}",
          word, there.empty() ? "none" : listed(there)));
    }
    for (const auto& [p, number] : fits.rbegin()->second) comms_[p].insert(number);
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

Holds Calls::row(const Process& rank, const read::Row& row) const {
  if (!named(rank, row.bucket, row.name, row.comm)) return Holds::no;
  if (filter_.sizes.empty()) return Holds::yes;
  // A call is at least as large as the row's class, and less than twice that. If the sum is that of
  // the smallest size, all calls have it; a single call has the sum.
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
  if (found != nullptr && !tables::in_steps(filter_.steps, *found, rank, ts_ns)) return false;
  if (phases == nullptr) return true;
  const tables::RankPhases* of_rank = phases->of(&rank);
  return filter_.phases.contains(of_rank == nullptr ? tables::StepPhase::other
                                                    : of_rank->at(thread, ts_ns));
}

bool Calls::launch(const Process& rank, const read::Event& e) const {
  return filter_.ops.empty() && filter_.sizes.empty() && filter_.comms.empty() &&
         moment(rank, e.thread, e.ts_ns);
}

bool Calls::call(const Process& rank, const read::Event& e) const {
  const auto holds = [&](const Sizes& s) { return s.holds(e.bytes); };
  return named(rank, e.bucket, e.name, e.comm) && moment(rank, e.thread, e.ts_ns) &&
         (filter_.sizes.empty() || std::ranges::any_of(filter_.sizes, holds));
}

bool Calls::time(const Process& rank, const read::DeviceTime& t) const {
  const std::int64_t begun_ns = t.ts_ns - t.queued_ns;
  if (!moment(rank, t.thread, begun_ns)) return false;
  if (!needs_begun()) return filter_.comms.empty() || (t.comm && on(rank, *t.comm));
  const auto of_rank = begun.find(&rank);
  return !t.launch && of_rank != begun.end() && of_rank->second.contains({begun_ns, t.thread});
}

}  // namespace tprof::filter
