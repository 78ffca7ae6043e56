#include "replay/communicator.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tprof::replay {

using read::Amounts;

void Communicator::add(std::int64_t rank, const std::string& host, const Call& call,
                       const Amounts& amounts) {
  hosts_.insert(host);
  calls_[call][rank] += amounts;
}

std::map<Call, Amounts> Communicator::take_common() {
  std::map<Call, Amounts> common;
  std::set<Call> rings;  // without the other end
  for (auto& [call, ranks] : calls_) {
    if (is_point_to_point(call.function)) {
      Call ring = call;
      ring.function = "ncclSend";
      ring.root = -1;
      rings.insert(std::move(ring));
      continue;
    }
    if (!std::cmp_equal(ranks.size(), nranks_)) continue;
    const auto calls_of = [](const auto& rank) { return rank.second.calls; };
    const std::uint64_t least = calls_of(*std::ranges::min_element(ranks, {}, calls_of));
    for (auto& [rank, amounts] : ranks) {
      const Amounts part = some_of(amounts, least);
      common[call] += part;
      amounts = less(amounts, part);
    }
  }
  for (const Call& ring : rings) take_ring(ring, common);
  return common;
}

// Takes a ring as sendrecv_perf makes it.
void Communicator::take_ring(const Call& ring, std::map<Call, Amounts>& common) {
  std::vector<Amounts*> ends;
  for (std::int64_t rank = 0; rank < nranks_; ++rank) {
    Call call = ring;
    call.root = (rank + 1) % nranks_;
    ends.push_back(end_of(call, rank));
    call.function = "ncclRecv";
    call.root = (rank - 1 + nranks_) % nranks_;
    ends.push_back(end_of(call, rank));
    if (ends.back() == nullptr || ends[ends.size() - 2] == nullptr) return;
  }
  std::uint64_t least = ends.front()->calls;
  for (const Amounts* amounts : ends) least = std::min(least, amounts->calls);
  for (Amounts* amounts : ends) {
    const Amounts part = some_of(*amounts, least);
    common[ring] += part;
    *amounts = less(*amounts, part);
  }
}

Amounts* Communicator::end_of(const Call& call, std::int64_t rank) {
  const auto ranks = calls_.find(call);
  if (ranks == calls_.end()) return nullptr;
  const auto found = ranks->second.find(rank);
  return found == ranks->second.end() ? nullptr : &found->second;
}

void Communicator::each(const std::function<void(const Call&, const Amounts&)>& f) const {
  for (const auto& [call, ranks] : calls_) {
    for (const auto& [rank, amounts] : ranks) f(call, amounts);
  }
}

}  // namespace tprof::replay
