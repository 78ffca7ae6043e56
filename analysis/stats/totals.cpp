#include "stats/totals.h"

#include <algorithm>
#include <bit>
#include <map>

#include "interpose/format/dtypes.h"
#include "read/events.h"

namespace tprof::stats {
namespace {

// Returns the size of a data type by the contract's name; 0 if not known.
std::uint64_t element_size(const std::string& dtype) {
  if (dtype == "byte") return 1;
  if (dtype.size() == 5 && dtype.starts_with("byte")) {
    return static_cast<std::uint64_t>(dtype[4] - '0');
  }
  const auto* known = std::ranges::find(kDtypes, dtype, &DtypeInfo::name);
  return known == std::end(kDtypes) ? 0 : known->size;
}

struct Gather {
  bool size = false;  // one int64; else uint8
  read::Amounts amounts;
};

// Adds up a size and what follows it on its communicator as soon as both are here. Lines of several
// threads are not in the order of issue.
class Gathers {
 public:
  explicit Gathers(const read::Process& /*its lines are enough*/) {}
  void call(const read::Event& event) {
    if (event.name != "ncclAllGather" || event.unfinished || event.captured || event.failed ||
        !event.numbered)
      return;
    const bool size = event.dtype == "int64" && event.count == 1;
    if (!size && event.dtype != "uint8") return;
    const auto [mine, fresh] =
        alone_.try_emplace({*event.comm, event.seq}, Gather{size, amounts_of(event)});
    const auto other = alone_.find({*event.comm, size ? event.seq + 1 : event.seq - 1});
    if (other != alone_.end() && other->second.size != size) {
      total_ += mine->second.amounts;
      total_ += other->second.amounts;
      alone_.erase(mine);
      alone_.erase(other);
    } else if (alone_.size() > kMost) {
      alone_.erase(alone_.begin());
    }
  }
  const read::Amounts& total() const { return total_; }

 private:
  // Lines of calls that follow one another are not far apart. An entry that has waited this long is
  // not a gather of objects.
  static constexpr std::size_t kMost = 65536;
  std::map<std::pair<std::int64_t, std::uint64_t>, Gather> alone_;  // by communicator and number
  read::Amounts total_;
};

OpKey with_comm(OpKey key, const read::Process& process, const std::optional<std::int64_t>& comm) {
  if (!comm) return key;
  const auto known = process.comms.find(*comm);
  key.comm_id = known == process.comms.end() ? "?" : known->second.id;
  key.nranks = known == process.comms.end() ? 0 : known->second.nranks;
  return key;
}

bool has_all_its_lines(const read::Process& process) {
  return process.footer && process.footer->dropped.empty();
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

read::Amounts amounts_of(const read::Event& e) {
  const auto host_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(e.dur_ns, 0));
  const std::uint64_t size = element_size(e.dtype);
  return {.calls = 1,
          .count = e.count,
          .elements = size == 0 ? 0 : e.bytes / size,
          .bytes = e.bytes,
          .host_ns = host_ns,
          .host_ns_max = host_ns};
}

OpKey op_of(const read::Event& e, const read::Process& process) {
  const std::int64_t bytes_class = tprof::bytes_class(e.bytes);
  return with_comm({e.bucket, e.name, e.dtype, {}, 0, bytes_class}, process, e.comm);
}

OpKey op_of(const read::Row& row, const read::Process& process) {
  return with_comm({row.bucket, row.name, row.dtype, {}, 0, row.bytes_class}, process, row.comm);
}

Buckets bucket_totals(const read::Process& process) {
  Buckets totals{};
  each_row(process, [&](const read::Row& row) {
    totals[static_cast<std::size_t>(row.bucket)] += row.amounts;
  });
  return totals;
}

void add_host_memory(HostMemories& totals, const read::Process& process) {
  each_row(process, [&](const read::Row& row) {
    if (!has_host_side(row.bucket)) return;
    totals[static_cast<std::size_t>(row.host_memory)][static_cast<std::size_t>(row.bucket)] +=
        row.amounts;
  });
}

void add_ops(Ops& ops, const read::Process& process) {
  each_row(process, [&](const read::Row& row) { ops[op_of(row, process)] += row.amounts; });
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

std::optional<read::Amounts> object_gathers(const run::Lines& lines) {
  read::Amounts all;
  const auto ranks = lines.each<Gathers>();
  for (const read::Process* p : lines.job().processes) {
    const Gathers* gathers = ranks.of(p);
    if (gathers == nullptr || !has_all_its_lines(*p)) return std::nullopt;
    all += gathers->total();
  }
  return all;
}

}  // namespace tprof::stats
