#include "stats/totals.h"

namespace tprof::stats {

Buckets bucket_totals(const read::Process& process) {
  Buckets totals{};
  each_row(process, [&](const read::Row& row) {
    totals[static_cast<std::size_t>(row.bucket)] += row.amounts;
  });
  return totals;
}

void add_ops(Ops& ops, const read::Process& process) {
  each_row(process, [&](const read::Row& row) {
    OpKey key{row.bucket, row.name, row.dtype, {}, 0, row.bytes_class};
    if (row.comm) {
      const auto comm = process.comms.find(*row.comm);
      key.comm_id = comm == process.comms.end() ? "?" : comm->second.id;
      key.nranks = comm == process.comms.end() ? 0 : comm->second.nranks;
    }
    ops[key] += row.amounts;
  });
}

read::Amounts sum(const Buckets& buckets) {
  read::Amounts all;
  for (const read::Amounts& a : buckets) all += a;
  return all;
}

}  // namespace tprof::stats
