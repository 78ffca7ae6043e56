#include "tables/op_kind.h"

namespace tprof::tables {

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
