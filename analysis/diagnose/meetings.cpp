#include "diagnose/meetings.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "diagnose/agreement.h"
#include "diagnose/values_read.h"
#include "interpose/format/record.h"
#include "stats/waiting.h"

namespace tprof::diagnose {
namespace {

// Tells who waits for whom in a collective. It is unknown for a count of 0: NCCL does nothing then.
struct Shape {
  bool known = false;
  bool rooted = false;
  bool root_waits = false;
};
Shape shape_of(const read::Event& e) {
  if (e.bytes == 0) return {};
  switch (e.bucket) {
    case Bucket::ALLGATHER:
    case Bucket::RESHARDING:
    case Bucket::ALLREDUCE:
    case Bucket::ALLTOALL:
      return {.known = true};
    case Bucket::BROADCAST:
      return {.known = e.peer.has_value(), .rooted = true};
    case Bucket::REDUCE:
      return {.known = e.peer.has_value(), .rooted = true, .root_waits = true};
    default:
      return {};
  }
}

// The size of a block, however many hosts a communicator has; one with few collectives has less.
constexpr std::uint64_t kPartsOfBlock = 256;

bool is_collective(Bucket bucket) {
  return !is_copy(bucket) && bucket != Bucket::P2P;
}

// Messages have numbers of their own. A group of several kinds has one time in all.
bool collective(const text::Kept& function) {
  static const text::Kept kOthers[] = {"ncclSend", "ncclRecv", kGroupName};
  return std::ranges::find(kOthers, function) == std::end(kOthers);
}

bool counts_device_time(const read::Process& p) {
  return std::ranges::any_of(read::rows_of(p), [](const read::Row& row) {
    return is_collective(row.bucket) && row.amounts.device_timed != 0;
  });
}

// The ledger has only sums of device time, also of calls whose lines are gone.
bool has_lines_of_times(const run::Lines& lines) {
  return timed_on_device(lines.job()) &&
         std::ranges::count_if(lines.job().processes, [&](const read::Process* p) {
           return counts_device_time(*p) && lines.has_device_times(*p);
         }) >= 2;
}

// True if ranks, of one host or of several, called different things.
bool differ(std::span<const HostPart> parts) {
  HostPart all;
  for (const HostPart& p : parts) all.add(p);
  return all.mixed;
}

}  // namespace

class Meetings::Arrivals {
 public:
  Arrivals(const read::Process& rank, Meetings& to) : rank_(rank), to_(to) {}

  void call(const read::Event& e) {
    if (!to_.on_device_) values_.see(e);
    if (!e.collective() || e.failed || e.captured || e.seq % to_.stride_ != 0) return;
    const Shape shape = shape_of(e);
    if (!shape.known) return;
    Place* place = place_on(*e.comm);
    if (place == nullptr) return;
    const bool root = shape.rooted && e.peer == place->rank;
    const Arrival arrival{e.bucket, shape.rooted, !shape.rooted || root != shape.root_waits,
                          !shape.rooted || root == shape.root_waits,
                          static_cast<std::uint8_t>(tprof::bytes_class(e.bytes))};
    if (!to_.on_device_) {
      return values_.collective(e.ts_ns, shape.rooted ? nullptr : &place->values,
                                {place, call_of(e.seq, arrival, e.ts_ns, std::nullopt)});
    }
    const Number number{*e.comm, static_cast<std::int64_t>(e.seq)};
    if (const Time* time = times_.find(number)) {
      times_.take_found();
      add(*place, call_of(e.seq, arrival, time->ts_ns, time->dur_ns));
    } else {
      untimed_ += keep(arrivals_, number, arrival);
    }
  }

  void device_time(const read::DeviceTime& t) {
    if (!to_.on_device_ || !t.comm || !t.seq || *t.seq % to_.stride_ != 0 || !collective(t.name))
      return;
    Place* place = place_on(*t.comm);
    if (place == nullptr) return;
    const Number number{*t.comm, static_cast<std::int64_t>(*t.seq)};
    if (const Arrival* arrival = arrivals_.find(number)) {
      arrivals_.take_found();
      add(*place, call_of(*t.seq, *arrival, t.ts_ns, t.dur_ns));
    } else {
      keep(times_, number, {t.ts_ns, t.dur_ns});
    }
  }
  void end() {
    to_.untimed_ += untimed_ + arrivals_.size();
    arrivals_ = {};
    times_ = {};
    values_.end();
    for (auto& [comm, place] : places_) hand_on(place);
    places_ = {};
  }

 private:
  static constexpr std::size_t kMostCalls = 64;          // that go to the table together
  using Number = std::pair<std::int64_t, std::int64_t>;  // of a communicator, and of the call on it
  struct Arrival {
    Bucket bucket;
    bool rooted;
    bool awaited;
    bool waits;
    std::uint8_t size_class;
  };
  struct Time {
    std::int64_t ts_ns;
    std::int64_t dur_ns;
  };
  struct Place;
  struct Called {
    Place* place = nullptr;
    Call call{};
  };
  using Values = ValuesRead<Called>;
  // The rank's own on a communicator.
  struct Place {
    Handle handle{};
    std::int64_t rank = 0;
    bool begun = false;         // there was a line
    std::vector<Call> calls{};  // that are not in the table yet
    Values::Since values{};
  };

  // Null: it does not meet others there.
  Place* place_on(std::int64_t comm) {
    const auto known = places_.find(comm);
    if (known != places_.end()) return &known->second;
    const Handle* handle = to_.handle_of({&rank_, comm});
    if (handle == nullptr) return nullptr;
    base_ns_ = to_.hosts_.on_axis(rank_, 0);
    return &places_.emplace(comm, Place{*handle, rank_.comms.at(comm).rank}).first->second;
  }

  // Keeps one half of a call and its device time until the other half comes. The two lie within a
  // second of each other in the file, so few are kept. When there are too many, the first is
  // dropped: its other half may never come. Returns how many were dropped.
  template <typename Value>
  static std::size_t keep(stats::Waiting<Value>& all, const Number& number, const Value& value) {
    constexpr std::size_t kMostHalves = 65536;
    if (Value* there = all.find(number)) {
      *there = value;
      return 0;
    }
    all.add(number, value);
    if (all.size() <= kMostHalves) return 0;
    all.take_oldest();
    return 1;
  }

  // `dur` is nullopt if the times are not the device's.
  Call call_of(std::uint64_t seq, const Arrival& a, std::int64_t ts,
               std::optional<std::int64_t> dur) const {
    const std::int64_t start = base_ns_ + ts;
    return {.seq = seq,
            .start = start,
            .end = start + dur.value_or(0),
            .read_ns = 0,
            .bucket = a.bucket,
            .rooted = a.rooted,
            .awaited = a.awaited,
            .waits = dur && a.waits,
            .size_class = a.size_class};
  }
  void add(Place& place, const Call& call) {
    if (!std::exchange(place.begun, true)) to_.has_lines(place.handle);
    place.calls.push_back(call);
    if (place.calls.size() == kMostCalls) hand_on(place);
  }
  void hand_on(Place& place) {
    to_.add(place.handle, place.calls);
    place.calls.clear();
  }

  const read::Process& rank_;
  Meetings& to_;
  stats::Waiting<Arrival> arrivals_;      // calls still without their time
  stats::Waiting<Time> times_;            // times still without their call
  std::map<std::int64_t, Place> places_;  // by communicator
  std::int64_t base_ns_ = 0;              // on its host's axis
  std::uint64_t untimed_ = 0;             // calls dropped from `arrivals_`
  Values values_{[this](Called called, std::int64_t read_ns) {
    called.call.read_ns = read_ns;
    add(*called.place, called.call);
  }};
};

Meetings::~Meetings() = default;

Meetings::Meetings(const run::Lines& lines, std::size_t room)
    : hosts_(lines.job()), on_device_(has_lines_of_times(lines)) {
  const job::Job& job = lines.job();
  std::uint64_t parts = 0;
  for (const Communicator& c : communicators(job)) {
    if (c.members.size() < 2) continue;
    Table& table = tables_[c.id];
    MetComm& met = table.comm;
    met.id = c.id;
    for (const Member& m : c.members) {
      met.hosts.push_back(hosts_.of(*m.process));
      if (m.done != nullptr) met.collectives = std::max(met.collectives, m.count());
    }
    std::ranges::sort(met.hosts);
    met.hosts.erase(std::unique(met.hosts.begin(), met.hosts.end()), met.hosts.end());
    met.expected.resize(met.hosts.size());
    for (const Member& m : c.members) {
      handles_.push_back(
          {{m.process, m.comm->comm}, {&table, static_cast<std::uint32_t>(met.members.size())}});
      const auto host = std::ranges::lower_bound(met.hosts, hosts_.of(*m.process));
      met.members.push_back({m.process, static_cast<std::size_t>(host - met.hosts.begin())});
    }
    const std::uint64_t most = UINT64_MAX / met.hosts.size();
    parts = read::saturated_sum(parts, std::min(met.collectives, most) * met.hosts.size());
  }
  handles_.shrink_to_fit();
  std::ranges::sort(handles_, {}, &std::pair<OfRank, Handle>::first);
  while (parts / stride_ > room) stride_ *= 2;
  for (auto& [id, table] : tables_) {
    const std::uint64_t kept = table.comm.collectives / stride_ + 1;
    table.block =
        std::min(kept, std::max<std::uint64_t>(1, kPartsOfBlock / table.comm.hosts.size()));
    table.blocks.resize((kept + table.block - 1) / table.block);
  }
  lines.each([this](const read::Process& rank) { return Arrivals(rank, *this); },
             [](const Arrivals& /*the table has all*/) {});
}

const Meetings::Handle* Meetings::handle_of(const OfRank& of) const {
  const auto at = std::ranges::lower_bound(handles_, of, {}, &std::pair<OfRank, Handle>::first);
  return at == handles_.end() || at->first != of ? nullptr : &at->second;
}

void Meetings::has_lines(const Handle& handle) {
  MetComm& comm = handle.table->comm;
  const std::scoped_lock lock(handle.table->mutexes[0]);
  comm.members[handle.member].has_lines = true;
  ++comm.expected[comm.members[handle.member].host];
}

void Meetings::add(const Handle& handle, std::span<const Call> calls) {
  Table& table = *handle.table;
  const std::size_t host = table.comm.members[handle.member].host;
  const std::size_t hosts = table.comm.hosts.size();
  std::unique_lock<std::mutex> lock;  // of the block of the call before
  for (const Call& c : calls) {
    const std::uint64_t n = c.seq / stride_;
    const std::uint64_t place = n / table.block;
    if (place >= table.blocks.size()) continue;  // beyond the ledger's count
    std::mutex& mutex = table.mutexes[place % table.mutexes.size()];
    if (lock.mutex() != &mutex) {
      lock = {};  // before it takes another: nobody holds two
      lock = std::unique_lock(mutex);
    }
    auto& block = table.blocks[place];
    if (block == nullptr) block = std::make_unique<HostPart[]>(table.block * hosts);
    HostPart one{.bucket = c.bucket, .rooted = c.rooted, .size_class = c.size_class, .seen = true};
    if (c.awaited) {
      one.first_start = one.last_start = c.start;
      one.last = handle.member;
      one.last_read_ns = c.read_ns;
      one.came = 1;
      one.read = c.read_ns == 0 ? 0 : 1;
    }
    if (c.waits) {
      one.first_end = c.end;
      one.sum_end = static_cast<std::uint64_t>(c.end);
      one.left = 1;
    }
    block[n % table.block * hosts + host].add(one);
  }
}

void Meetings::each(const std::function<void(const Meeting&)>& see) const {
  for (const auto& [id, table] : tables_) {
    const std::size_t hosts = table.comm.hosts.size();
    bool same = true;
    for (std::size_t b = 0; same && b < table.blocks.size(); ++b) {
      if (table.blocks[b] == nullptr) continue;
      for (std::uint64_t i = 0; i < table.block; ++i) {
        const std::span parts(&table.blocks[b][i * hosts], hosts);
        const auto known = [](const HostPart& p) { return p.came != 0 || p.left != 0; };
        if (std::ranges::none_of(parts, known)) continue;
        same = !differ(parts);
        if (!same) break;
        see({table.comm, (b * table.block + i) * stride_, parts});
      }
    }
  }
}

bool timed_on_device(const job::Job& job) {
  return std::ranges::count_if(job.processes,
                               [](const read::Process* p) { return counts_device_time(*p); }) >= 2;
}

const char* collective_name(Bucket bucket) {
  switch (bucket) {
    case Bucket::ALLGATHER:
      return "ncclAllGather";
    case Bucket::RESHARDING:
      return "ncclReduceScatter";
    case Bucket::ALLTOALL:
      return "ncclAlltoAll";
    default:
      return "ncclAllReduce";
  }
}

std::vector<align::Passage> passages_of(const Meeting& meeting) {
  std::vector<align::Passage> all;
  for (std::size_t i = 0; i < meeting.parts.size(); ++i) {
    const HostPart& p = meeting.parts[i];
    if (p.came == 0 && p.left == 0) continue;
    all.push_back(
        {meeting.comm.hosts[i], p.came != 0, p.last_start, p.left != 0, p.first_end, p.mean_end()});
  }
  return all;
}

}  // namespace tprof::diagnose
