#include "run/columns.h"

#include <algorithm>
#include <limits>
#include <string>

#include "interpose/format/ledger.h"
#include "interpose/format/line_kinds.h"
#include "interpose/format/record.h"
#include "read/told_lines.h"

namespace tprof::run {
namespace {

constexpr std::uint64_t kMostOfValue = 16;  // the largest element: a complex number of doubles

bool blocks(const read::Event& e) {
  return e.host_memory == HostMemory::pageable || e.name.str().find("Async") == std::string::npos;
}

// True if the call takes time on the device.
bool takes_time(const read::Event& e, const read::Comm* comm) {
  return e.bytes != 0 && (comm == nullptr || comm->nranks != 1);
}

}  // namespace

void Columns::call(const read::Event& e) {
  if (!wanted(e.ts_ns) || !e.executed()) return;
  const bool loads = e.bucket == Bucket::H2D;
  const bool reads = e.bucket == Bucket::D2H;
  const read::Comm* comm = read::comm_of(*rank_.process, e.comm);
  count(e, comm);
  if (loads || reads) {
    const Blocked copy{{e.ts_ns, e.ts_ns + e.dur_ns}, loads, e.bytes};
    if (blocks(e)) {
      rank_.blocked.push_back(copy);
    } else if (reads && e.bytes <= kMostOfValue) {
      values_.push_back(copy);
    }
  }
  if (loads) loads_.push_back({{e.ts_ns, e.bytes}, e.thread});
  if (reads) rank_.reads.push_back({e.ts_ns, e.bytes});
  if (!e.comm) {
    calls_.push_back({.begun = {e.ts_ns, e.thread},
                      .alone = true,
                      .stream = e.stream.value_or(-1),
                      .bucket = e.bucket,
                      .name = e.name,
                      .bytes = e.bytes});
    return;
  }
  if (!e.numbered) return;
  std::int64_t called = e.ts_ns;
  if (e.group != 0) {
    auto& [group, begun] = groups_[e.thread];
    if (std::exchange(group, e.group) != e.group) begun.clear();
    called = begun.try_emplace(e.stream.value_or(-1), e.ts_ns).first->second;
  }
  if (comm == nullptr || !comm->known()) return;
  MeetingKey m{.comm = static_cast<std::uint32_t>(*e.comm), .number = e.seq};
  bool alone = false;
  if (e.bucket == Bucket::P2P) {
    if (!e.peer) return;
    alone = e.bytes == 0 || *e.peer == comm->rank;
    const auto me = static_cast<std::int32_t>(comm->rank);
    const auto peer = static_cast<std::int32_t>(*e.peer);
    m.sends = e.name == "ncclSend";
    m.from = m.sends ? me : peer;
    m.to = m.sends ? peer : me;
  }
  calls_.push_back({{called, e.thread},
                    alone,
                    m,
                    e.stream.value_or(-1),
                    e.bucket,
                    e.name,
                    e.dtype == "float32",
                    e.count,
                    e.bytes,
                    e.group});
}

void Columns::device_time(const read::DeviceTime& t) {
  static const text::Kept kGroup(kGroupName);
  if (!wanted(t.ts_ns - t.queued_ns)) return;
  timed_.push_back({{t.ts_ns - t.queued_ns, t.thread},
                    t.ts_ns,
                    t.ts_ns + t.dur_ns,
                    t.lane,
                    t.comm ? static_cast<std::uint32_t>(*t.comm) : Calls::kNoComm,
                    t.waited_ns,
                    t.calls,
                    t.name == kGroup,
                    t.launch,
                    t.computes});
}

void Columns::busy(const read::Busy& b) {
  if (!wanted(b.ts_ns)) return;
  const Interval time{b.ts_ns, b.ts_ns + b.dur_ns};
  (b.unsure ? rank_.unsure : rank_.sure).push_back(time);
  // A line of length 0 ends a window. Nothing is known about the time until the next window.
  Intervals& followed = rank_.followed;
  if (followed.empty() || std::exchange(window_ended_, b.dur_ns == 0)) {
    followed.push_back({b.ts_ns, b.ts_ns});
  }
  followed.back().to_ns = std::max(followed.back().to_ns, time.to_ns);
}

void Columns::metadata(const read::Line& line) {
  if (is_line(line.text, LineKind::group)) {
    const auto group = read::parsed_line<read::GroupLine>(line, rank_.process->file);
    group_ends_.emplace(group.group, group.to_ns);
  }
  if (!is_line(line.text, LineKind::window)) return;
  const auto window = read::parsed_line<read::WindowLine>(line, rank_.process->file);
  windows_.push_back({window.from_ns, window.to_ns});
}

void Columns::thread(const read::ThreadName& t) {
  if (thread_kind(t.name) == ThreadKind::autograd) autograd_.insert(t.thread);
}

void Columns::count(const read::Event& e, const read::Comm* comm) {
  std::vector<Step>& steps = rank_.steps;
  if (steps.empty() || e.ts_ns < steps.front().from_ns) return;
  if (e.bucket == Bucket::P2P) stage_messages_.take(*rank_.process, e);
  Step& step = *std::prev(std::ranges::upper_bound(steps, e.ts_ns, {}, &Step::from_ns));
  if (step.to_ns <= e.ts_ns) return;
  if (e.bucket == Bucket::H2D) step.to_device += e.bytes;
  if (!e.comm) return;
  step.sent += e.bytes;
  ++step.collectives;
  if (takes_time(e, comm)) ++step.to_time;
}

void Columns::end() {
  stage_messages_.end();
  rank_.stage_messages = stage_messages_.of_stages();
  rank_.exchanged = stage_messages_.exchanged();
  find_waits_for_values();
  fill();
  Intervals copies;
  for (const Timed& t : timed_) {
    if (t.computes) copies.push_back({t.came_ns, t.ended_ns});
  }
  std::ranges::sort(rank_.blocked, {}, [](const Blocked& b) { return b.host.to_ns; });
  for (const auto& [load, thread] : loads_) {
    if (!autograd_.contains(thread)) rank_.loads.push_back(load);
  }
  std::ranges::sort(rank_.loads, {}, &Copy::called_ns);
  std::ranges::sort(rank_.reads, {}, &Copy::called_ns);
  // A copy is not computation, whatever its stream. Kernels that run on other streams meanwhile are
  // lost.
  rank_.sure = without(joined(std::move(rank_.sure)), joined(std::move(copies)));
  rank_.unsure = joined(std::move(rank_.unsure));
  follow_in_windows();
  // Assigning {} would keep the capacity, on all ranks.
  calls_ = decltype(calls_)();
  values_ = decltype(values_)();
  timed_ = decltype(timed_)();
  loads_ = decltype(loads_)();
  group_ends_.clear();
}

// If there are windows, the device was observed in these only. Not every window ends with a line
// that says so, and in a file that was not closed the last window has no line yet.
void Columns::follow_in_windows() {
  rank_.followed = joined(std::move(rank_.followed));
  rank_.windows = !windows_.empty();
  if (!rank_.windows) return;
  if (rank_.process->end != read::End::closed) {
    windows_.push_back({windows_.back().to_ns, std::numeric_limits<std::int64_t>::max()});
  }
  rank_.followed = common(rank_.followed, joined(std::move(windows_)));
}

// PyTorch's .item() copies one element into pinned memory and waits until it is there. The next
// timed call tells how long it waited; the wait belongs to the last value read. A program that
// waits for more bytes in pinned memory has offloaded them, and needs them.
void Columns::find_waits_for_values() {
  if (values_.empty()) return;
  std::ranges::sort(timed_, {}, [](const Timed& t) { return t.begun.called_ns; });
  std::ranges::sort(values_, {}, [](const Blocked& b) { return b.host.to_ns; });
  const auto end_ns = [](const Blocked& value) { return value.host.to_ns; };
  std::int64_t before_ns =
      std::numeric_limits<std::int64_t>::min();  // when the previous call was made
  for (Timed& t : timed_) {
    const auto next = std::ranges::upper_bound(values_, t.begun.called_ns, {}, end_ns);
    if (t.waited_ns > 0 && next != values_.begin() && std::prev(next)->host.from_ns >= before_ns) {
      Blocked value = *std::prev(next);
      value.host.from_ns = value.host.to_ns;
      value.host.to_ns += std::exchange(t.waited_ns, 0);
      rank_.blocked.push_back(value);
    }
    before_ns = t.begun.called_ns;
  }
}

// Fills the rows in order, with the collective or message of each.
void Columns::fill() {
  std::ranges::sort(timed_, {}, [](const Timed& t) { return std::tie(t.came_ns, t.ended_ns); });
  std::ranges::sort(calls_);
  std::map<std::int64_t, std::uint16_t> streams;  // by lane
  Calls& c = rank_.calls;
  c.each_column([&](auto& column) { column.reserve(timed_.size()); });
  for (const Timed& t : timed_) {
    const auto row = static_cast<std::uint32_t>(c.size());
    c.came_ns.push_back(t.came_ns);
    c.ended_ns.push_back(t.ended_ns);
    c.waited_ns.push_back(t.waited_ns);
    c.comm.push_back(t.comm);
    const auto number = static_cast<std::uint16_t>(streams.size());
    c.stream.push_back(streams.try_emplace(t.lane, number).first->second);
    auto of_row = std::ranges::equal_range(calls_, t.begun, {}, &Call::begun);
    // In a damaged file a time may have no call, or a communicator that the rank does not have.
    const read::Comm* comm = read::comm_of(*rank_.process, t.comm);
    const bool known_comm = t.comm == Calls::kNoComm || (comm != nullptr && comm->known());
    if (t.calls == 0 || !known_comm) of_row = {of_row.end(), of_row.end()};
    const Call first = of_row.empty() ? Call() : of_row.front();
    const auto group = group_ends_.find(first.group);
    // NCCL may enqueue some of a group long before its end returns.
    c.called_ns.push_back(group == group_ends_.end() ? t.begun.called_ns
                                                     : std::min(group->second, t.came_ns));
    c.bucket.push_back(first.bucket);
    c.name.push_back(first.name);
    c.count.push_back(first.count);
    c.made.push_back(static_cast<std::uint32_t>(t.calls));
    std::uint64_t bytes = 0;
    bool waits = false;
    for (const Call& call : of_row) {
      bytes += call.bytes;
      if (call.alone) continue;
      meets_.emplace_back(call.meets, row);
      waits = call.bytes != 0 && (call.meets.from >= 0 || all_wait(call.bucket));
    }
    // Calls that were timed together are alike, and some of them may have no line.
    c.bytes.push_back(of_row.empty() ? 0 : bytes / of_row.size() * t.calls);
    const bool messages = first.meets.from >= 0;
    const bool known = of_row.size() == t.calls || !(messages || t.mixed);
    c.is.push_back({.messages = messages,
                    .wide = first.wide,
                    .backward = autograd_.contains(t.begun.thread),
                    .mixed = t.mixed,
                    .launch = t.launch,
                    .met = waits && known});
  }
  c.all_came_ns = c.came_ns;
  const std::vector<std::size_t> called = by_call(c);
  const bool waits_known = rank_.process->header.config.get("TPROF_TIMING") != "cupti";
  // CUPTI does not tell how long launches waited in a full queue. A host that is further ahead of
  // its device than it took for the call may have waited all the time.
  for (std::size_t k = 1; k < called.size() && !waits_known; ++k) {
    const std::size_t i = called[k];
    const std::int64_t took_ns = c.called_ns[i] - c.called_ns[called[k - 1]];
    if (c.came_ns[i] - c.called_ns[i] > took_ns) c.waited_ns[i] = took_ns;
  }
  for (std::size_t k = 0; k < called.size(); ++k) {
    const bool last = k + 1 == called.size();
    c.is[called[k]].at_once = last || c.came_ns[called[k]] <= c.called_ns[called[k + 1]];
  }
}

}  // namespace tprof::run
