#include "steps/sequence.h"

#include <algorithm>

namespace tprof::steps {
namespace {

Symbol::Kind kind_of(const read::Event& e) {
  switch (e.bucket) {
    case Bucket::RESHARDING:
    case Bucket::ALLREDUCE:
    case Bucket::REDUCE:
      return Symbol::Kind::reduction;
    case Bucket::P2P:
      return Symbol::Kind::p2p;
    case Bucket::H2D:
      return Symbol::Kind::copy_in;
    default:
      return Symbol::Kind::collective;
  }
}

std::uint64_t given_of(const read::Event& e) {
  return e.bucket == Bucket::ALLGATHER ? e.count * read::element_size(e.dtype) : 0;
}

}  // namespace

void Sequence::add(const read::Event& e) {
  if (e.unfinished || e.captured || e.failed || e.launch) return;
  if (is_copy(e.bucket) && e.bucket != Bucket::H2D) return;
  if (operations.size() == kMost) {
    whole = false;
    return;
  }
  // Batches may be copied by any function.
  const text::Kept name = e.bucket == Bucket::H2D ? text::Kept() : e.name;
  std::uint32_t& number =
      numbers_[{name, e.comm.value_or(-1), e.count, e.dtype, e.peer.value_or(-1)}].number;
  if (number == UINT32_MAX) {
    number = static_cast<std::uint32_t>(symbols.size());
    symbols.push_back({kind_of(e), e.name, e.comm.value_or(-1), e.count, e.bytes, given_of(e),
                       e.peer.value_or(-1)});
  }
  operations.push_back({e.ts_ns, e.seq, number});
}

void Sequence::sort() {
  std::ranges::stable_sort(operations, {}, &Operation::ts_ns);
}

}  // namespace tprof::steps
