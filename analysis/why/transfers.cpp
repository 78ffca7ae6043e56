#include "why/transfers.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "diagnose/agreement.h"
#include "diagnose/host_clocks.h"
#include "diagnose/last_two.h"
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
  diagnose::LastTwo came{};
  std::int64_t end_ns = std::numeric_limits<std::int64_t>::max();

  std::int64_t transfer_ns() const { return std::max<std::int64_t>(end_ns - came.last.at_ns, 0); }
};

// Nothing where a rank's time is missing, since it may have come later.
std::optional<One> time_of(const Meeting& m, const HostClocks& clocks) {
  One one;
  for (std::size_t i = 0; i < m.parts.size(); ++i) {
    const diagnose::HostPart& part = m.parts[i];
    const std::size_t host = m.comm.hosts[i];
    if (part.rooted || part.left == 0 || part.came != m.comm.expected[i]) return std::nullopt;
    if (!clocks.clocks.comparable(m.comm.hosts[0], host)) return std::nullopt;
    one.came.take({clocks.clocks.aligned(host, part.last_start), i});
    if (part.came > 1) one.came.take({clocks.clocks.aligned(host, part.before_last), i});
    one.end_ns = std::min(one.end_ns, clocks.clocks.aligned(host, part.mean_end()));
  }
  return one;
}

struct Sums {
  Transfer of;
  std::vector<double> times{};  // every `stride`-th
  std::size_t stride = 1;

  void add(std::int64_t transfer_ns) {
    constexpr std::size_t kMostTimes = 4096;
    if (of.collectives++ % stride == 0) times.push_back(static_cast<double>(transfer_ns));
    if (times.size() < kMostTimes) return;
    for (std::size_t i = 0; i < kMostTimes / 2; ++i) times[i] = times[2 * i];
    times.resize(kMostTimes / 2);
    stride *= 2;
  }
  void came_last(const read::Process* rank, std::int64_t late_ns) {
    CameLast& last = of.last[rank];
    ++last.times;
    last.sum_ns += late_ns;
    last.most_ns = std::max(last.most_ns, late_ns);
  }
};

class Finder {
 public:
  Finder(const job::Job& job, std::shared_ptr<const Meetings> meetings, const Messages& messages)
      : job_(job),
        meetings_(std::move(meetings)),
        messages_(messages),
        clocks_(diagnose::host_clocks(*meetings_)) {}

  Transfers run() {
    found_.last_came = std::make_unique<LastCame>(meetings_, clocks_);
    meetings_->each([&](const Meeting& m) { see(m); });
    for (const Message& m : messages_.all()) see(m);
    found_.last_came->all_are_added();
    for (auto& [key, sum] : sums_) {
      sum.of.usual_ns = std::llround(median(sum.times));
      sum.of.quick_ns = std::llround(quantile(sum.times, 0.1));
      found_.all.push_back(std::move(sum.of));
    }
    return std::move(found_);
  }

 private:
  using Key = std::tuple<std::string, Bucket, std::int64_t>;

  double error(std::size_t a, std::size_t b) const {
    return diagnose::error_ns(*meetings_, clocks_.clocks, a, b);
  }

  void see(const Meeting& m) {
    const auto one = time_of(m, clocks_);
    if (!one) return;
    found_.last_came->add(m, one->came.last.at_ns);
    Sums& sum = sums_of(m.comm.id, m.parts[0].bucket, m.parts[0].size_class);
    sum.add(one->transfer_ns());
    const auto& [last, before] = one->came;
    const std::int64_t late = one->came.late_ns();
    if (static_cast<double>(late) <= error(m.comm.hosts[last.host], m.comm.hosts[before.host])) {
      return;
    }
    sum.came_last(m.comm.members[m.parts[last.host].last].process, late);
  }

  void see(const Message& m) {
    const job::Hosts& hosts = meetings_->hosts();
    const std::size_t from = hosts.of(*m.sender);
    const std::size_t to = hosts.of(*m.receiver);
    if (!clocks_.clocks.comparable(from, to)) return;
    const auto at = [&](const read::Process* rank, std::int64_t ns) {
      return found_.last_came->on_axis(*rank, ns);
    };
    const std::int64_t sent = at(m.sender, m.sent->from_ns);
    const std::int64_t got = at(m.receiver, m.received->from_ns);
    const std::int64_t end = at(m.receiver, m.received->to_ns);
    const auto at_most = static_cast<std::int64_t>(error(from, to));
    // Nothing arrives before it is sent: these are not the two ends of one message.
    if (end + at_most < sent) return;
    // A small one may be on its way before its receiver comes: then its sender did not wait.
    const bool waited = got <= at(m.sender, m.sent->to_ns);
    found_.last_came->add(m, sent, waited ? got : sent);
    // A group's time is not that of one of its messages.
    if (m.sent->of_group != 0 || m.received->of_group != 0) return;
    const read::Comm& comm = m.sender->comms.at(m.sent->comm);
    Sums& sum = sums_of(std::string(comm.id), Bucket::P2P, m.sent->size_class);
    sum.add(std::max<std::int64_t>(end - std::max(sent, got), 0));
    if (std::abs(sent - got) <= at_most) return;
    sum.came_last(sent > got ? m.sender : m.receiver, std::abs(sent - got));
  }

  Sums& sums_of(const std::string& comm, Bucket bucket, std::int64_t size_class) {
    const auto [at, fresh] = sums_.try_emplace(Key{comm, bucket, size_class});
    if (fresh) at->second.of = named(comm, bucket, size_class);
    return at->second;
  }

  Transfer named(const std::string& id, Bucket bucket, std::int64_t size_class) {
    Transfer t{.comm = id, .bucket = bucket, .size_class = size_class};
    const MembersOf& members = members_of(id);
    t.ranks = members.ranks;
    t.hosts = members.hosts;
    for (const read::Row& row : read::rows_of(*members.one)) {
      const read::Comm* its = read::comm_of(*members.one, row.comm);
      if (row.bucket != bucket || row.bytes_class != size_class || its == nullptr ||
          std::string_view(its->id) != id) {
        continue;
      }
      t.calls += row.amounts.calls;
      t.bytes += row.amounts.bytes;
    }
    return t;
  }

  struct MembersOf {
    text::Ranks ranks{};
    std::vector<std::string> hosts{};
    const read::Process* one = nullptr;
  };
  const MembersOf& members_of(const std::string& id) {
    if (members_.empty()) {
      for (const diagnose::Communicator& c : diagnose::communicators(job_)) {
        MembersOf& its = members_[c.id];
        std::vector<std::int64_t> ranks;
        std::set<std::size_t> hosts;
        for (const diagnose::Member& m : c.members) {
          if (its.one == nullptr) its.one = m.process;
          if (m.process->header.rank) ranks.push_back(*m.process->header.rank);
          hosts.insert(meetings_->hosts().of(*m.process));
        }
        its.ranks = text::Ranks(std::move(ranks));
        for (const std::size_t h : hosts) its.hosts.push_back(meetings_->hosts().all()[h].name);
      }
    }
    return members_.at(id);
  }

  const job::Job& job_;
  std::shared_ptr<const Meetings> meetings_;
  const Messages& messages_;
  const HostClocks& clocks_;
  Transfers found_;
  std::map<Key, Sums> sums_;
  std::map<std::string, MembersOf> members_;
};

}  // namespace

LastCame::LastCame(std::shared_ptr<const Meetings> meetings, HostClocks clocks)
    : meetings_(std::move(meetings)), clocks_(std::move(clocks)) {}

void LastCame::add(const Meeting& m, std::int64_t at_ns) {
  Collectives& all = comms_[m.comm.id];
  const std::size_t place = m.seq / meetings_->stride();
  if (all.came.size() <= place) {
    all.came.resize(place + 1);
    all.size_classes.resize(place + 1);
  }
  all.came[place] = at_ns;
  all.size_classes[place] = m.parts[0].size_class;
}

void LastCame::add(const Message& m, std::int64_t sender_ns, std::int64_t receiver_ns) {
  messages_[m.sender].push_back({m.sent->called_ns, true, m.sent->size_class, m.sent->of_group,
                                 on_clock(*m.sender, receiver_ns)});
  messages_[m.receiver].push_back({m.received->called_ns, false, m.sent->size_class,
                                   m.received->of_group, on_clock(*m.receiver, sender_ns)});
}

void LastCame::all_are_added() {
  for (auto& [rank, ends] : messages_) {
    std::ranges::sort(ends, {}, [](const End& e) { return std::pair(e.called_ns, e.sends); });
  }
}

std::int64_t LastCame::on_axis(const read::Process& rank, std::int64_t ts_ns) const {
  const job::Hosts& hosts = meetings_->hosts();
  return clocks_.clocks.aligned(hosts.of(rank), hosts.on_axis(rank, ts_ns));
}

// Both clocks run at nearly the same rate, so a step on one is a step on the other.
std::int64_t LastCame::on_clock(const read::Process& rank, std::int64_t at_ns) const {
  const std::int64_t first_guess = at_ns - on_axis(rank, 0);
  return first_guess - (on_axis(rank, first_guess) - at_ns);
}

LastCameTo::LastCameTo(const LastCame& all, const read::Process& rank)
    : all_(all),
      rank_(rank),
      host_(all.meetings_->hosts().of(rank)),
      base_ns_(all.meetings_->hosts().on_axis(rank, 0)),
      zero_ns_(on_axis(0)) {
  const auto messages = all.messages_.find(&rank);
  messages_ = messages == all.messages_.end() ? nullptr : &messages->second;
}

std::int64_t LastCameTo::on_axis(std::int64_t ts_ns) const {
  return all_.clocks_.clocks.aligned(host_, base_ns_ + ts_ns);
}

std::optional<Came> LastCameTo::collective(std::int64_t comm, std::uint64_t seq) {
  auto on = on_.find(comm);
  if (on == on_.end()) {
    const read::Comm* its = read::comm_of(rank_, comm);
    if (its == nullptr) return std::nullopt;
    const auto found = all_.comms_.find(std::string_view(its->id));
    on = on_.emplace(comm, found == all_.comms_.end() ? nullptr : &found->second).first;
  }
  const std::uint64_t stride = all_.meetings_->stride();
  const std::uint64_t place = seq / stride;
  if (on->second == nullptr || seq % stride != 0 || place >= on->second->came.size()) {
    return std::nullopt;
  }
  const std::int64_t came = on->second->came[place];
  if (came == 0) return std::nullopt;
  const std::int64_t first_guess = came - zero_ns_;
  return Came{first_guess - (on_axis(first_guess) - came), on->second->size_classes[place]};
}

std::optional<Came> LastCameTo::message(std::int64_t called_ns, bool sends) const {
  if (messages_ == nullptr) return std::nullopt;
  const auto end =
      std::ranges::lower_bound(*messages_, std::pair(called_ns, sends), {},
                               [](const auto& e) { return std::pair(e.called_ns, e.sends); });
  if (end == messages_->end() || end->called_ns != called_ns || end->sends != sends) {
    return std::nullopt;
  }
  return Came{end->came_ns, end->size_class};
}

std::optional<Came> LastCameTo::group(const read::DeviceTime& t) const {
  if (messages_ == nullptr) return std::nullopt;
  const std::int64_t called_ns = t.ts_ns - t.queued_ns;
  std::uint64_t known = 0;
  std::uint64_t all = 0;
  Came last{t.ts_ns, Came::kSeveral};
  for (auto end = std::ranges::lower_bound(*messages_, called_ns, {}, &LastCame::End::called_ns);
       end != messages_->end() && end->called_ns == called_ns; ++end) {
    ++known;
    all = end->of_group;
    last.at_ns = std::max(last.at_ns, end->came_ns);
  }
  return known != 0 && known == all ? std::optional(last) : std::nullopt;
}

std::optional<Came> LastCameTo::of(const read::DeviceTime& t) {
  if (!t.comm || !t.seq) return std::nullopt;
  const TimeOf what = what_timed(t);
  if (what == TimeOf::group) return group(t);
  if (what == TimeOf::other) return collective(*t.comm, *t.seq);
  return message(t.ts_ns - t.queued_ns, what == TimeOf::send);
}

Transfers transfers_of(const run::Lines& lines, std::shared_ptr<const Meetings> meetings) {
  if (!meetings->on_device()) return {};
  return Finder(lines.job(), std::move(meetings), Messages(lines)).run();
}

}  // namespace tprof::why
