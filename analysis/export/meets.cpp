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

std::uint32_t Meets::find(const Channel& channel) const {
  const auto found = numbers_.find(channel);
  return found == numbers_.end() ? kNoChannel : found->second;
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

std::int64_t Meets::number_of_meet(std::uint32_t channel, std::uint64_t seq) const {
  const Table& of = tables_[channel];
  return of.first + (find_meet(channel, seq) - of.meets.begin());
}

Meets::Found Meets::find_meet(std::uint32_t channel, std::uint64_t seq) const {
  const std::vector<Meet>& meets = tables_[channel].meets;
  if (meets.empty() || seq < meets.front().seq) return meets.end();
  // Mostly every collective has a line.
  const std::uint64_t guess = seq - meets.front().seq;
  if (guess < meets.size() && meets[guess].seq == seq) {
    return meets.begin() + static_cast<std::ptrdiff_t>(guess);
  }
  const Found meet = std::ranges::lower_bound(meets, seq, {}, &Meet::seq);
  return meet != meets.end() && meet->seq == seq ? meet : meets.end();
}

Meets::Turn Meets::turn(std::uint32_t channel, std::uint32_t rank, const Arrival& arrival) const {
  if (channel == kNoChannel) return Turn::none;
  const Found meet = find_meet(channel, arrival.seq);
  if (meet == tables_[channel].meets.end() || meet->first == meet->last) return Turn::none;
  const auto mine = std::tie(arrival.at_ns, rank);
  const auto first = std::tie(meet->first_ns, meet->first);
  const auto last = std::tie(meet->last_ns, meet->last);
  if (mine < first || mine > last) return Turn::none;
  return mine == first ? Turn::first : mine == last ? Turn::last : Turn::between;
}

}  // namespace tprof::trace_export
