#include "interpose/device/exposure.h"

#include <utility>

namespace tprof::device {
namespace {

// Sorts pieces, and joins those that overlap or touch.
void join(Pages<Interval>& pieces) {
  std::sort(pieces.begin(), pieces.end(),
            [](const Interval& a, const Interval& b) { return a.from_ns < b.from_ns; });
  pieces.join([](Interval& last, const Interval& p) {
    const bool touches = p.from_ns <= last.to_ns;
    if (touches) last.to_ns = std::max(last.to_ns, p.to_ns);
    return touches;
  });
}

// Returns the total length of `pieces`, counting overlaps once.
std::uint64_t union_of(Pages<Interval>& pieces) {
  join(pieces);
  std::uint64_t sum = 0;
  for (const Interval& p : pieces) sum += p.to_ns - p.from_ns;
  return sum;
}

}  // namespace

void Exposure::begin_reading(std::uint64_t now_ns) {
  looked_ns_ = std::max(looked_ns_, now_ns);
  keep_ns_ = looked_ns_;
  for (std::uint32_t i = 0; i < streams_; ++i) stream_[i].standing = false;
}

Exposure::Stream* Exposure::known(std::uint64_t stream, std::uint32_t device) {
  for (std::uint32_t i = 0; i < streams_; ++i) {
    if (stream_[i].stream == stream && stream_[i].device == device) return &stream_[i];
  }
  return nullptr;
}

Exposure::Stream* Exposure::find(std::uint64_t stream, std::uint32_t device) {
  if (Stream* there = known(stream, device)) return there;
  if (streams_ == kStreams) {
    no_room_ = true;
    return nullptr;
  }
  stream_[streams_].stream = stream;
  stream_[streams_].device = device;
  return &stream_[streams_++];
}

void Exposure::standing(const Mark& mark) {
  Stream* s = find(mark.stream, mark.device);
  if (s == nullptr || std::exchange(s->standing, true)) return;
  s->enqueued_ns = mark.enqueued_ns;
}

void Exposure::add(Stream& s, const Segment& next) {
  if (next.to_ns <= next.from_ns) return;
  Pages<Segment>& segments = s.segments;
  if (segments.size() != 0) {
    Segment& last = *(segments.end() - 1);
    const bool alike = last.certain == next.certain && last.why == next.why;
    if (last.to_ns == next.from_ns && alike && !last.sampled() && !next.sampled()) {
      last.to_ns = next.to_ns;
      return;
    }
  }
  if (segments.size() == kMostSegments) forget_before(segments.data()[kMostSegments / 2].to_ns);
  segments.push_back(next);
}

// Uses the previous mark as a sample of how long the stream is idle before a launch.
void Exposure::count_sample(Stream& s, const Mark& next) {
  // Later samples count more: the program may now launch other kernels.
  constexpr double kMost = 16;
  if (!std::exchange(s.sampled, false) || next.begins_ns == UINT64_MAX) return;
  // Without the mark the launch would have come sooner.
  const std::uint64_t host_ns = next.first_ns - std::min(next.first_ns, s.sample_cost_ns);
  const std::uint64_t came_ns = next.begins_ns - std::min(next.begins_ns, s.sample_cost_ns);
  const std::uint64_t idle_ns = came_ns - std::min(came_ns, s.sample_end_ns);
  Gaps& of = s.gaps[Mark::gap_kind(host_ns)];
  if (of.samples >= kMost) of.samples /= 2, of.idle_ns /= 2, of.busy_ns /= 2;
  of.samples += 1;
  of.idle_ns += static_cast<double>(std::min(idle_ns, host_ns));
  of.busy_ns += static_cast<double>(host_ns - std::min(idle_ns, host_ns));
}

// Returns how long the stream was idle between the mark's launches, estimated from samples with
// gaps of the same kind. Without such samples the busy time of a gap is taken from the next shorter
// kind, or else the next longer.
double Exposure::idle_between(const Stream& s, const Mark& m) {
  double idle_ns = 0;
  for (std::uint32_t kind = 0; kind < Mark::kGapKinds; ++kind) {
    if (m.gaps[kind] == 0) continue;
    std::uint32_t like = kind;
    while (like > 0 && s.gaps[like].samples == 0) --like;
    while (like < Mark::kGapKinds && s.gaps[like].samples == 0) ++like;
    if (like == Mark::kGapKinds) return -1;
    const Gaps& of = s.gaps[like];
    const double usual_ns = 0.75 * Mark::kShortestGapNs * (1U << kind);  // the kind's middle
    idle_ns += m.gaps[kind] * (like == kind ? of.idle_ns / of.samples
                                            : std::max(usual_ns - of.busy_ns / of.samples, 0.0));
  }
  return idle_ns;
}

void Exposure::count_busy(Stream& s, double launches, double ns) {
  constexpr double kMost = 4096;
  if (s.launches > kMost) s.launches /= 2, s.busy_ns /= 2;
  s.launches += launches;
  s.busy_ns += ns;
}

// The stream ran dry in this time, or was dry already. It was busy for an estimated `busy_ns`, if
// its launches took as long as usual; as kernels differ, one may take eight times as long.
void Exposure::ran_dry(Stream& s, std::uint64_t from_ns, std::uint64_t to_ns, double busy_ns) {
  constexpr double kFew = 16;
  constexpr double kTimes = 8;
  if (to_ns <= from_ns) return;
  if (s.launches < kFew) return add(s, {from_ns, to_ns, false, ExposureLost::host_late});
  const double one = s.busy_ns / s.launches;
  const auto length = static_cast<double>(to_ns - from_ns);
  const double busy = std::clamp(busy_ns, std::min(one / 2, length), length);
  const double most = std::min(busy + kTimes * one, length);
  add(s, {from_ns, from_ns + static_cast<std::uint64_t>(most), busy >= most,
          ExposureLost::host_late, static_cast<std::uint64_t>(busy)});
}

// Adds what is known of the stream since its last mark.
void Exposure::fed(Stream& s, const Mark& m, std::uint64_t at) {
  if (m.begins_ns == UINT64_MAX) return;
  const std::uint64_t from = std::clamp(m.begins_ns, s.last_ns, at);
  const std::uint64_t put = std::clamp(m.enqueued_ns, from, at);
  const std::uint64_t until = m.slow_from_ns == 0 ? put : std::clamp(m.slow_from_ns, from, put);
  const std::uint64_t last = std::clamp(m.last_ns, from, until);
  // Between launches, while the device had caught up with the host.
  double idle = 0;
  if (last > from) {
    const auto length = static_cast<double>(last - from);
    const double all = idle_between(s, m);
    idle = std::min(all * length / static_cast<double>(m.last_ns - m.begins_ns), length);
    const auto busy = all < 0 ? kUnknown : static_cast<std::uint64_t>(length - idle);
    add(s, {from, last, busy >= last - from && all >= 0, ExposureLost::host_late, busy});
    if (all < 0) idle = length / 2;
  }
  // After the last launch. If a mark is reached at once, the stream was empty.
  const bool empty = m.empty || at <= m.made_ns + kNoiseNs;
  const auto so_far = static_cast<double>(last - from) - idle;
  if (m.slow_from_ns == 0 && (!empty || until - last <= kNoiseNs)) {
    add(s, {last, until, true, {}});
    count_busy(s, m.launches, so_far + static_cast<double>((empty ? until : at) - last));
  } else {
    const double usual = s.launches == 0 ? 0 : m.launches * s.busy_ns / s.launches;
    ran_dry(s, last, until, usual - so_far);
  }
  add(s, {until, put, false, ExposureLost::host_late});
  const bool away = at <= m.made_ns && m.made_ns - m.enqueued_ns >= kAwayNs;
  if (!empty || away) add(s, {put, at, !away, ExposureLost::host_late});
}

void Exposure::mark(const Mark& m) {
  Stream* s = find(m.stream, m.device);
  if (s == nullptr) return;
  const std::uint64_t at = std::max(m.at_ns, s->last_ns);
  if (m.unseen_before || s->missed) {
    add(*s, {s->last_ns, at, false, m.unseen_before ? m.why : s->why});
    s->sampled = false;
  } else if (s->open) {
    count_sample(*s, m);
    fed(*s, m, at);
  }
  // A device that lags behind the host has no gaps. It is unknown when the kernel of a slow launch
  // ran.
  s->sampled = m.sample && m.slow_from_ns == 0 && s->last_ns <= m.enqueued_ns;
  // Reached at once: the launch was done some time before.
  s->sample_end_ns = at <= m.made_ns + kNoiseNs ? (m.last_ns + at) / 2 : at;
  s->sample_cost_ns = m.made_ns - std::min(m.made_ns, m.enqueued_ns);
  s->open = m.kind != Mark::Kind::closes;
  s->missed = false;
  s->last_ns = at;
}

void Exposure::missed(const Mark& m, ExposureLost why) {
  Stream* s = find(m.stream, m.device);
  if (s == nullptr) return;
  s->missed = true;
  s->why = why;
}

void Exposure::call(const CallSpan& span) {
  calls_.push_back(span);
}

std::uint64_t Exposure::known_until(std::uint32_t devices) const {
  std::uint64_t until = UINT64_MAX;
  for (std::uint32_t i = 0; i < streams_; ++i) {
    const Stream& s = stream_[i];
    if ((devices & bit_of(s.device)) == 0) continue;
    const std::uint64_t unknown_ns = unknown_from(s);
    until = std::min(until, unknown_ns == UINT64_MAX ? looked_ns_ : unknown_ns);
  }
  // Nothing was launched on the device yet: only the first launch will show that none came before.
  return until == UINT64_MAX ? 0 : until;
}

std::uint64_t Exposure::unknown_from(const Stream& s) {
  if (s.open || s.missed) return s.last_ns;
  return s.standing ? std::max(s.last_ns, s.enqueued_ns) : UINT64_MAX;
}

template <typename F>
void Exposure::each_piece(const Stream& s, std::uint64_t from_ns, std::uint64_t to_ns, F&& f) {
  const Segment* at = std::lower_bound(
      s.segments.begin(), s.segments.end(), from_ns,
      [](const Segment& segment, std::uint64_t ns) { return segment.to_ns <= ns; });
  for (; at != s.segments.end() && at->from_ns < to_ns; ++at) {
    f(Interval{std::max(at->from_ns, from_ns), std::min(at->to_ns, to_ns)}, at);
  }
  const std::uint64_t unknown_ns = std::max(unknown_from(s), from_ns);
  if (unknown_ns < to_ns) f(Interval{unknown_ns, to_ns}, nullptr);
}

void Exposure::computed(std::uint32_t devices, std::uint64_t from_ns, std::uint64_t to_ns,
                        Pages<Interval>& found) {
  found.clear();
  certain_.clear();
  possible_.clear();
  const auto may_have = [&](std::uint64_t from, std::uint64_t to) {
    if (from < to) possible_.push_back({from, to});
  };
  for (std::uint32_t i = 0; i < streams_; ++i) {
    const Stream& s = stream_[i];
    if ((devices & bit_of(s.device)) == 0) continue;
    each_piece(s, from_ns, to_ns, [&](const Interval& piece, const Segment* at) {
      if (at == nullptr || at->certain || !at->sampled()) {
        (at != nullptr && at->certain ? certain_ : possible_).push_back(piece);
        return;
      }
      // Readers count half of the unsure time as computation, so this marks as much as unsure as
      // makes the sum right. Its place in this time, which is a millisecond at most, is unknown.
      const std::uint64_t length = piece.to_ns - piece.from_ns;
      const std::uint64_t twice =
          2 * std::min(at->busy_ns, at->to_ns - at->from_ns) * length / (at->to_ns - at->from_ns);
      const std::uint64_t sure = twice > length ? twice - length : 0;
      const std::uint64_t until = piece.from_ns + sure;
      if (sure != 0) certain_.push_back({piece.from_ns, until});
      may_have(until, piece.from_ns + std::min(twice, length));
    });
  }
  if (no_room_) may_have(from_ns, to_ns);
  may_have(from_ns, std::min(forgotten_ns_, to_ns));
  if (certain_.failed() || possible_.failed()) return found.push_back({from_ns, to_ns, true});
  join(certain_);
  join(possible_);
  for (const Interval& p : certain_) found.push_back(p);
  const Interval* sure = certain_.begin();
  for (const Interval& p : possible_) {
    std::uint64_t from = p.from_ns;
    while (sure != certain_.end() && sure->to_ns <= from) ++sure;
    for (const Interval* s = sure; s != certain_.end() && s->from_ns < p.to_ns; ++s) {
      if (from < s->from_ns) found.push_back({from, s->from_ns, true});
      from = std::max(from, s->to_ns);
    }
    if (from < p.to_ns) found.push_back({from, p.to_ns, true});
  }
  std::sort(found.begin(), found.end(),
            [](const Interval& a, const Interval& b) { return a.from_ns < b.from_ns; });
}

Exposed Exposure::judge(const CallSpan& c) {
  const std::uint64_t length = c.end_ns - c.start_ns;
  Exposed found{c.key, c.calls, false, ExposureLost::no_launch, length, 0, false};
  certain_.clear();
  possible_.clear();
  bool any = false;
  ExposureLost why{};
  std::uint64_t unsure = 0;  // length of the uncertain pieces of all streams
  std::uint64_t blind = 0;   // length of those without samples
  double busy = 0;           // estimated computation in them
  const auto may_have = [&](const Interval& piece, const Segment* segment) {
    const auto length_ns = piece.to_ns - piece.from_ns;
    const bool sampled = segment != nullptr && segment->sampled();
    unsure += length_ns;
    blind += sampled ? 0 : length_ns;
    const double share = sampled ? static_cast<double>(segment->busy_ns) /
                                       static_cast<double>(segment->to_ns - segment->from_ns)
                                 : 0.5;
    busy += share * static_cast<double>(length_ns);
  };
  for (std::uint32_t i = 0; i < streams_; ++i) {
    const Stream& s = stream_[i];
    if (s.device != c.device) continue;
    any = true;
    // Work on the call's own stream does not overlap with it.
    if (s.stream == c.stream) continue;
    each_piece(s, c.start_ns, c.end_ns, [&](const Interval& piece, const Segment* at) {
      possible_.push_back(piece);
      if (at != nullptr && at->certain) return certain_.push_back(piece);
      may_have(piece, at);
      why = at != nullptr ? at->why : ExposureLost::unread;
    });
  }
  if (!any) return found;
  if (no_room_ || c.start_ns < forgotten_ns_ || possible_.failed()) {
    found.why = ExposureLost::no_room;
    return found;
  }
  const std::uint64_t at_most = length - union_of(certain_);
  const std::uint64_t at_least = length - union_of(possible_);
  const std::uint64_t between = at_most - at_least;
  found.known = std::min(between, blind) / 2 <= tolerance_ns(length);
  found.why = why;
  if (!found.known) return found;
  const double share = unsure == 0 ? 0 : busy / static_cast<double>(unsure);
  found.exposed_ns = at_most - static_cast<std::uint64_t>(share * static_cast<double>(between));
  found.late = at_least > kNoiseNs;
  return found;
}

void Exposure::forget_before(std::uint64_t ns) {
  for (std::uint32_t i = 0; i < streams_; ++i) {
    Pages<Segment>& segments = stream_[i].segments;
    const Segment* keep = std::lower_bound(
        segments.begin(), segments.end(), ns,
        [](const Segment& segment, std::uint64_t before) { return segment.to_ns < before; });
    const auto gone = static_cast<std::size_t>(keep - segments.begin());
    // The rest is moved only if it pays.
    if (gone == 0 || (gone < 1024 && segments.size() < kMostSegments)) continue;
    segments.erase_first(gone);
  }
  if (ns > keep_ns_) forgotten_ns_ = std::max(forgotten_ns_, ns);
}

}  // namespace tprof::device
