#include "tables/steps.h"

namespace tprof::tables {

namespace {

constexpr std::size_t kMostStepsKept = 4096;

struct SizeOf {
  SizeKey operator()(const read::Process& /*rank*/, const read::Event& e) const {
    return {e.bucket, e.bytes};
  }
  SizeKey operator()(const read::Process& /*rank*/, const read::Row& row) const {
    const auto size = static_cast<unsigned>(row.bytes_class);
    return {row.bucket, row.bytes_class < 0 ? 0 : std::uint64_t{1} << size, true};
  }
};

std::map<SizeKey, std::int64_t> calls_of(const StepOf<SizeKey>& step) {
  std::map<SizeKey, std::int64_t> calls;
  for (const auto& [size, a] : step.kinds) calls[size] = static_cast<std::int64_t>(a.calls);
  return calls;
}

}  // namespace

bool in_steps(const std::optional<StepList>& asked, const steps::Found& found,
              const read::Process& rank, std::int64_t ts_ns) {
  return !asked || asked->holds(steps::step_at(found, &rank, ts_ns).value_or(-1));
}

StepTotals step_totals(const run::Lines& lines, const steps::Found& found, const StepList& asked) {
  StepTotals all;
  for (auto& [number, step] : by_step<SizeKey>(lines, found, asked, false, SizeOf())) {
    all.push_back(std::move(step));
  }
  return all;
}

Buckets buckets_of(const StepOf<SizeKey>& step) {
  Buckets all{};
  for (const auto& [size, a] : step.kinds) all[static_cast<std::size_t>(size.bucket)] += a;
  return all;
}

CallsBySteps step_calls(const run::Lines& lines, const steps::Found& found, const OpKinds& kinds) {
  const std::size_t n = found.steps.size();
  const StepList last = {{{found.steps[n - std::min(n, kMostStepsKept)], INT64_MAX}}};
  const auto kind_of = [&](const auto& rank, const auto& call) { return kinds.of(call, rank); };
  return by_step<OpKind>(lines, found, last, true, kind_of);
}

std::vector<Odd> odd_ones(const StepTotals& steps) {
  std::map<std::map<SizeKey, std::int64_t>, std::vector<std::int64_t>> alike;
  for (const auto& s : steps) alike[calls_of(s)].push_back(s.step);
  const auto most =
      std::ranges::max_element(alike, {}, [](const auto& calls) { return calls.second.size(); });
  if (most == alike.end() || (most->second.size() == 1 && steps.size() > 1)) return {};
  std::vector<Odd> all;
  for (const auto& [calls, of] : alike) {
    if (calls == most->first) continue;
    Odd odd = {of, calls};
    for (const auto& [key, n] : most->first) odd.more[key] -= n;
    std::erase_if(odd.more, [](const auto& entry) { return entry.second == 0; });
    all.push_back(std::move(odd));
  }
  std::ranges::sort(all, {}, [](const Odd& o) { return o.steps[0]; });
  return all;
}

bool once_for_several(Bucket bucket) {
  return bucket == Bucket::ALLREDUCE || bucket == Bucket::REDUCE || bucket == Bucket::RESHARDING ||
         bucket == Bucket::BROADCAST || bucket == Bucket::D2H;
}

OpKinds::OpKinds(std::int64_t world, const std::vector<CommSummary>& comms) : world_(world) {
  for (const CommSummary& c : comms) roles_[{c.id, c.nranks}] = c.role;
}

OpKind OpKinds::of(const OpKey& op, HostMemory memory) const {
  OpKind kind = {op.bucket, op.name, op.dtype, op.bytes_class, {}, {}};
  if (has_host_side(op.bucket)) kind.role = kHostMemoryNames[static_cast<std::size_t>(memory)];
  if (is_copy(op.bucket)) return kind;
  const auto role = roles_.find({op.comm_id.str(), op.nranks});
  if (role != roles_.end()) kind.role = role->second;
  kind.size = op.nranks == world_ ? "world" : std::to_string(op.nranks);
  return kind;
}

}  // namespace tprof::tables
