#include "export/meets.h"

#include <algorithm>
#include <tuple>

namespace tprof::trace_export {

std::optional<End> end_of(const read::Event& call) {
  if (!call.numbered || !call.comm) return std::nullopt;
  if (call.bucket != Bucket::P2P) return End{};
  const bool receives = call.name == "ncclRecv";
  if (!call.peer || (!receives && call.name != "ncclSend")) return std::nullopt;
  return End{*call.peer, receives};
}

Meets::Meets(const std::vector<const read::Process*>& processes) {
  for (const read::Process* p : processes) {
    for (const auto& [number, comm] : p->comms) {
      if (!comm.known() || comm.nranks < 2) continue;
      comms_.try_emplace({comm.id.str(), comm.nranks}, static_cast<std::uint32_t>(comms_.size()));
    }
  }
}

std::uint32_t Meets::comm_of(const read::Comm& comm) const {
  const auto found = comms_.find({comm.id.str(), comm.nranks});
  return found == comms_.end() ? kNoChannel : found->second;
}

std::uint32_t Meets::number_of(const Channel& channel) {
  const auto [at, fresh] =
      numbers_.try_emplace(channel, static_cast<std::uint32_t>(tables_.size()));
  if (fresh) tables_.push_back({channel});
  return at->second;
}

// Ranks that came at one moment are in the order in which their lines stand.
void Meets::join(Meet& meet, std::uint32_t rank, std::int64_t at_ns) {
  if (std::tie(at_ns, rank) < std::tie(meet.first_ns, meet.first)) {
    meet.first_ns = at_ns;
    meet.first = rank;
  }
  if (std::tie(at_ns, rank) > std::tie(meet.last_ns, meet.last)) {
    meet.last_ns = at_ns;
    meet.last = rank;
  }
}

void Meets::add(std::uint32_t channel, std::uint32_t rank, const std::vector<Arrival>& arrivals) {
  std::vector<Meet>& meets = tables_[channel].meets;
  const std::size_t known = meets.size();
  auto next = meets.begin();
  std::vector<Meet> more;
  for (const Arrival& a : arrivals) {
    while (next != meets.end() && next->seq < a.seq) ++next;
    if (next != meets.end() && next->seq == a.seq) {
      join(*next, rank, a.at_ns);
    } else {
      more.push_back({a.seq, a.at_ns, a.at_ns, rank, rank});
    }
  }
  if (more.empty()) return;
  meets.insert(meets.end(), more.begin(), more.end());
  std::ranges::inplace_merge(meets, meets.begin() + static_cast<std::ptrdiff_t>(known), {},
                             &Meet::seq);
}

std::int64_t Meets::number_meets() {
  std::int64_t next = 0;
  for (Table& table : tables_) {
    table.first = next;
    next += static_cast<std::int64_t>(table.meets.size());
  }
  return next;
}

std::pair<Meets::Turn, std::int64_t> Meets::turn(std::uint32_t channel, std::uint32_t rank,
                                                 const Arrival& arrival) const {
  const Table& table = tables_[channel];
  const std::vector<Meet>& meets = table.meets;
  // Mostly every collective has a line.
  const std::uint64_t guess = meets.empty() ? 0 : arrival.seq - meets.front().seq;
  auto meet = meets.begin() + static_cast<std::ptrdiff_t>(std::min(guess, meets.size()));
  if (meet == meets.end() || meet->seq != arrival.seq) {
    meet = std::ranges::lower_bound(meets, arrival.seq, {}, &Meet::seq);
  }
  if (meet == meets.end() || meet->seq != arrival.seq || meet->first == meet->last) {
    return {Turn::none, 0};
  }
  return {rank == meet->first  ? Turn::first
          : rank == meet->last ? Turn::last
                               : Turn::between,
          table.first + (meet - meets.begin())};
}

}  // namespace tprof::trace_export
