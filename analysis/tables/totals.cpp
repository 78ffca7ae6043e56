#include "tables/totals.h"

#include <algorithm>
#include <string>

#include "read/error.h"
#include "steps/rank_steps.h"

namespace tprof::tables {
namespace {

template <typename Call>
OpKey key_of(const Call& call, std::int64_t bytes_class, const read::Process& process) {
  OpKey key = {call.bucket, call.name, call.dtype, {}, 0, bytes_class};
  if (!call.comm) return key;
  const read::Comm* comm = read::comm_of(process, call.comm);
  key.comm_id = comm == nullptr ? text::Kept("?") : comm->id;
  key.nranks = comm == nullptr ? 0 : comm->nranks;
  return key;
}

using read::Amounts;
using read::Ledger;

const Ledger* end_of(const read::Process& p, std::int64_t epoch) {
  const auto end = std::ranges::find(p.epoch_ends, epoch, &Ledger::epoch);
  if (end != p.epoch_ends.end()) return &*end;
  return p.ledger && p.ledger->epoch == epoch ? &*p.ledger : nullptr;
}

}  // namespace

double bus_factor(Bucket bucket, std::int64_t nranks) {
  const double share = static_cast<double>(nranks - 1) / static_cast<double>(nranks);
  switch (bucket) {
    case Bucket::ALLREDUCE:
      return 2 * share;
    case Bucket::ALLGATHER:
    case Bucket::RESHARDING:
    case Bucket::ALLTOALL:
    case Bucket::OTHER_COLL:  // Gather, Scatter
      return share;
    default:
      return 1;
  }
}

OpKey op_of(const read::Event& e, const read::Process& process) {
  return key_of(e, tprof::bytes_class(e.bytes), process);
}

OpKey op_of(const read::Row& row, const read::Process& process) {
  return key_of(row, row.bytes_class, process);
}

Buckets bucket_totals(const read::Rows& rows) {
  Buckets totals{};
  each_row(rows, [&](const read::Row& row) {
    totals[static_cast<std::size_t>(row.bucket)] += row.amounts;
  });
  return totals;
}

void add_host_memory(HostMemories& totals, const read::Rows& rows) {
  each_row(rows, [&](const read::Row& row) {
    if (!has_host_side(row.bucket)) return;
    totals[static_cast<std::size_t>(row.host_memory)][static_cast<std::size_t>(row.bucket)] +=
        row.amounts;
  });
}

void add_ops(Ops& ops, const read::Process& process, const read::Rows& rows) {
  each_row(rows, [&](const read::Row& row) { ops[op_of(row, process)] += row.amounts; });
}

read::Amounts sum(const Buckets& buckets) {
  read::Amounts all;
  for (const read::Amounts& a : buckets) all += a;
  return all;
}

void add(Buckets& to, const Buckets& more) {
  for (std::size_t b = 0; b < kBucketCount; ++b) to[b] += more[b];
}

std::optional<read::Amounts> without(const read::Amounts& all, const read::Amounts& part) {
  read::Amounts left = all;
  for (const auto of : {&read::Amounts::calls, &read::Amounts::count, &read::Amounts::elements,
                        &read::Amounts::bytes, &read::Amounts::host_ns}) {
    if (all.*of < part.*of) return std::nullopt;
    left.*of -= part.*of;
  }
  return left;
}

std::optional<double> algbw(const read::Amounts& a) {
  if (a.device_timed == 0 || a.device_ns == 0) return std::nullopt;
  return static_cast<double>(a.device_bytes) / static_cast<double>(a.device_ns);
}

std::optional<double> busbw(const OpKey& key, const read::Amounts& amounts) {
  const auto bandwidth = algbw(amounts);
  if (!bandwidth || is_copy(key.bucket) || key.nranks < 1) return std::nullopt;
  return *bandwidth * bus_factor(key.bucket, key.nranks);
}

void Together::add(const OpKey& key, const read::Amounts& more) {
  amounts += more;
  const auto busbw = tables::busbw(key, more);
  bus = bus && (busbw || more.device_timed == 0);
  bus_bytes += busbw.value_or(0) * static_cast<double>(more.device_ns);
}

std::optional<double> Together::busbw() const {
  if (!bus || !algbw(amounts)) return std::nullopt;
  return bus_bytes / static_cast<double>(amounts.device_ns);
}

std::optional<read::Amounts> object_gathers(const run::Lines& lines) {
  // Lines of consecutive calls are close together, so old ones may be dropped.
  constexpr std::size_t kMost = 65536;
  // An all-gather by communicator and number. A pair counts as soon as both are known, as lines of
  // several threads are out of order.
  using Number = std::pair<std::int64_t, std::uint64_t>;
  struct Gathers {
    explicit Gathers(const read::Process& /*lines are enough*/) {}
    void call(const read::Event& e) {
      if (e.name != "ncclAllGather" || !e.executed() || !e.numbered) return;
      const bool size = e.dtype == "int64" && e.count == 1;
      if (!size && e.dtype != "uint8") return;
      const auto other = (size ? bytes : sizes).extract({*e.comm, size ? e.seq + 1 : e.seq - 1});
      if (other) {
        total += other.mapped();
        total += read::amounts_of(e);
        return;
      }
      auto& mine = size ? sizes : bytes;
      mine.emplace(Number(*e.comm, e.seq), read::amounts_of(e));
      if (mine.size() > kMost) mine.erase(mine.begin());
    }
    std::map<Number, read::Amounts> sizes, bytes;
    read::Amounts total;
  };
  read::Amounts all;
  const auto ranks = lines.each<Gathers>();
  for (const read::Process* p : lines.job().processes) {
    const Gathers* gathers = ranks.of(p);
    if (gathers == nullptr || !steps::lines_are_whole(*p)) return std::nullopt;
    all += gathers->total;
  }
  return all;
}

void keep_epoch(read::Process& p, std::int64_t epoch) {
  const Ledger* end = end_of(p, epoch);
  const Ledger* begin = epoch == 0 ? nullptr : end_of(p, epoch - 1);
  if (end == nullptr || (epoch != 0 && (begin == nullptr || !begin->ends_epoch))) {
    throw read::BadInput(
        p.file, "has no epoch " + std::to_string(epoch) +
                    ": the program called tprof_reset less often, or its ledger was not written");
  }
  const Ledger before = begin == nullptr ? Ledger() : *begin;
  std::map<read::RowKey, Amounts> rows;
  for (const read::Row& row : before.rows) rows[row] = row.amounts;
  Ledger own = *end;
  own.rows.clear();
  for (read::Row row : end->rows) {
    const std::uint64_t unfinished = row.amounts.unfinished;
    row.amounts -= rows[row];
    row.amounts.unfinished = unfinished;  // as of the end
    if (row.amounts != Amounts()) own.rows.push_back(row);
  }
  for (read::Collectives& c : own.collectives) {
    const auto earlier = std::ranges::find(before.collectives, c.comm, &read::Collectives::comm);
    if (earlier != before.collectives.end()) c.count -= std::min(c.count, earlier->count);
  }
  p.ledger = std::move(own);
}

}  // namespace tprof::tables
