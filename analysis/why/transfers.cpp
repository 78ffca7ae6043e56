#include "why/transfers.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include "diagnose/host_clocks.h"
#include "diagnose/meetings.h"
#include "diagnose/who.h"
#include "why/numbers.h"

namespace tprof::why {
namespace {

using diagnose::HostClocks;
using diagnose::Meeting;
using diagnose::Meetings;

// On the axis of the first host.
struct One {
  std::int64_t last_ns;  // when the last rank came
  std::int64_t end_ns;

  std::int64_t transfer_ns() const { return std::max<std::int64_t>(end_ns - last_ns, 0); }
};

// Nothing where a rank's time is missing, since it may have come later.
std::optional<One> time_of(const Meeting& m, const HostClocks& clocks) {
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  std::int64_t end = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < m.parts.size(); ++i) {
    const diagnose::HostPart& part = m.parts[i];
    const std::size_t host = m.comm.hosts[i];
    if (part.rooted || part.left == 0 || part.came != m.comm.expected[i]) return std::nullopt;
    if (!clocks.clocks.comparable(m.comm.hosts[0], host)) return std::nullopt;
    last = std::max(last, clocks.clocks.aligned(host, part.last_start));
    end = std::min(end, clocks.clocks.aligned(host, part.mean_end()));
  }
  return One{last, end};
}

struct Sums {
  Transfer of;
  std::vector<double> times{};  // every `stride`-th
  std::size_t stride = 1;

  void add(const One& one) {
    constexpr std::size_t kMostTimes = 4096;
    if (of.collectives++ % stride == 0) times.push_back(static_cast<double>(one.transfer_ns()));
    if (times.size() < kMostTimes) return;
    for (std::size_t i = 0; i < kMostTimes / 2; ++i) times[i] = times[2 * i];
    times.resize(kMostTimes / 2);
    stride *= 2;
  }
};

Transfer named(const diagnose::MetComm& comm, Bucket bucket, const Meetings& meetings) {
  Transfer t{.comm = comm.id, .bucket = bucket};
  std::vector<std::int64_t> ranks;
  for (const auto& member : comm.members) {
    if (member.process->header.rank) ranks.push_back(*member.process->header.rank);
  }
  t.ranks = text::Ranks(std::move(ranks));
  for (const std::size_t host : comm.hosts) t.hosts.push_back(meetings.hosts().all()[host].name);
  const read::Process& one = *comm.members.front().process;
  for (const read::Row& row : read::rows_of(one)) {
    const read::Comm* its = read::comm_of(one, row.comm);
    if (row.bucket != bucket || its == nullptr || std::string_view(its->id) != comm.id) continue;
    t.calls += row.amounts.calls;
    t.bytes += row.amounts.bytes;
  }
  return t;
}

Transfers transfers_of(const std::shared_ptr<const Meetings>& shared) {
  Transfers found;
  const Meetings& meetings = *shared;
  if (!meetings.on_device()) return found;
  const HostClocks& clocks = diagnose::host_clocks(meetings);
  found.last_came = std::make_unique<LastCame>(shared, clocks);
  std::map<std::pair<const diagnose::MetComm*, Bucket>, Sums> sums;
  meetings.each([&](const Meeting& m) {
    const auto one = time_of(m, clocks);
    if (!one) return;
    found.last_came->add(m, one->last_ns);
    const Bucket bucket = m.parts[0].bucket;
    const auto [at, fresh] = sums.try_emplace({&m.comm, bucket});
    if (fresh) at->second.of = named(m.comm, bucket, meetings);
    at->second.add(*one);
  });
  for (auto& [key, sum] : sums) {
    sum.of.usual_ns = std::llround(median(sum.times));
    found.all.push_back(std::move(sum.of));
  }
  // The map's keys are addresses.
  std::ranges::sort(found.all, {}, [](const Transfer& t) { return std::tuple(t.comm, t.bucket); });
  return found;
}

}  // namespace

LastCame::LastCame(std::shared_ptr<const Meetings> meetings, HostClocks clocks)
    : meetings_(std::move(meetings)), clocks_(std::move(clocks)) {}

void LastCame::add(const Meeting& m, std::int64_t at_ns) {
  std::vector<std::int64_t>& all = comms_[m.comm.id];
  const std::size_t place = m.seq / meetings_->stride();
  if (all.size() <= place) all.resize(place + 1);
  all[place] = at_ns;
}

std::int64_t LastCame::on_axis(const read::Process& rank, std::int64_t ts_ns) const {
  const job::Hosts& hosts = meetings_->hosts();
  return clocks_.clocks.aligned(hosts.of(rank), hosts.on_axis(rank, ts_ns));
}

std::optional<std::int64_t> LastCame::at(const read::Process& rank, std::int64_t comm,
                                         std::uint64_t seq) const {
  const read::Comm* its = read::comm_of(rank, comm);
  if (its == nullptr || seq % meetings_->stride() != 0) return std::nullopt;
  const auto of_comm = comms_.find(std::string_view(its->id));
  const std::size_t place = seq / meetings_->stride();
  if (of_comm == comms_.end() || place >= of_comm->second.size()) return std::nullopt;
  const std::int64_t came = of_comm->second[place];
  if (came == 0) return std::nullopt;
  // Both clocks run at nearly the same rate, so a step on one is a step on the other.
  const std::int64_t zero = on_axis(rank, 0);
  const std::int64_t first_guess = came - zero;
  return first_guess - (on_axis(rank, first_guess) - came);
}

void want_transfers(collect::Passes& passes, Transfers& to) {
  passes.want([](const read::Process&, collect::Collectors&) {},
              [meetings = diagnose::want_meetings(passes), &to](const collect::Lines&) {
                to = transfers_of(meetings);
              });
}

}  // namespace tprof::why
