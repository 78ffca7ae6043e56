#include "why/rank_lines.h"

#include <cmath>
#include <limits>
#include <utility>

#include "interpose/format/line_kinds.h"
#include "interpose/format/thread_kind.h"
#include "read/error.h"
#include "read/told_lines.h"

namespace tprof::why {
namespace {

// A copy to the host seems to compute for less than this.
constexpr std::int64_t kMomentNs = 50'000;
// A pause behind the last step is longer than the step divided by this.
constexpr std::int64_t kPartsOfStep = 50;

}  // namespace

RankLines::RankLines(const read::Process& rank, std::vector<Step> steps, bool marked,
                     RankFacts& facts, const LastCame* last_came)
    : rank_(rank),
      steps_(std::move(steps)),
      marked_(marked),
      facts_(facts),
      came_(rank, last_came) {}

bool RankLines::room() {
  too_many_ = too_many_ || collectives_.size() + computes_.size() + unsure_.size() +
                                   called_.size() + reads_.size() + copies_on_device_.size() >=
                               kMostLines;
  return !too_many_;
}

void RankLines::call(const read::Event& e) {
  if (e.unfinished || e.failed || e.captured || !room()) return;
  if (e.bucket == Bucket::P2P && !steps_.empty() && e.ts_ns >= steps_.front().from_ns) {
    stage_messages_.take(rank_, e);
  }
  if (takes_time(e)) called_.push_back(e.ts_ns);
  if (Step* step = step_at(e.ts_ns)) {
    Cell& c = *step->cell;
    if (e.bucket == Bucket::H2D) c.to_device += static_cast<float>(e.bytes);
    if (e.bucket == Bucket::D2H) reads_.emplace_back(e.ts_ns, e.bytes);
    if (e.comm) {
      c.sent += static_cast<float>(e.bytes);
      ++c.collectives;
    }
  }
}

RankLines::Step* RankLines::step_at(std::int64_t ns) {
  const auto behind = std::ranges::upper_bound(steps_, ns, {}, &Step::from_ns);
  if (behind == steps_.begin() || std::prev(behind)->to_ns <= ns) return nullptr;
  return &*std::prev(behind);
}

void RankLines::device_time(const read::DeviceTime& t) {
  if (!room()) return;
  const Span span{t.ts_ns, t.ts_ns + t.dur_ns};
  if (t.launch) return computes_.push_back(span);  // a graph has its kernels in it
  if (t.device) copies_on_device_.push_back(span);
  if (!t.comm) return;
  came_.device_time(t);
  if (came_.bucket == nullptr) return;
  const std::optional<Came>& came = came_.came;
  collectives_.push_back(
      {.on_device = span,
       .all_there_ns = came ? std::clamp(came->at_ns, span.from_ns, span.to_ns) : span.to_ns,
       .met = came.has_value(),
       .called_ns = t.ts_ns - t.queued_ns,
       .thread = t.thread,
       .comm = *t.comm,
       .bucket = *came_.bucket,
       .seq = t.seq.value_or(UINT64_MAX),
       .calls = t.calls,
       .step = SIZE_MAX,
       .name = t.name});
}

void RankLines::busy(const read::Busy& b) {
  // Between the first line of a window and the end of the last one a gap says that the device did
  // not compute; what is not between them is not known. A line of length 0 ends a window.
  if (followed_.empty() || std::exchange(window_ended_, b.dur_ns == 0)) {
    followed_.push_back({b.ts_ns, b.ts_ns});
  }
  followed_.back().to_ns = std::max(followed_.back().to_ns, b.ts_ns + b.dur_ns);
  if (room()) (b.unsure ? unsure_ : computes_).push_back({b.ts_ns, b.ts_ns + b.dur_ns});
}

void RankLines::metadata(const read::Line& line) {
  if (!is_line(line.text, LineKind::window)) return;
  const auto window = read::told_in<read::WindowLine>(line, rank_.file);
  windows_.push_back({window.from_ns, window.to_ns});
}

// A device is followed in windows, as far as there are any. Not every one of them ends with a line
// that says so, and in a file that was not closed the last has no line yet.
void RankLines::follow_in_windows() {
  join(followed_);
  if (windows_.empty()) return;
  if (rank_.end != read::End::closed) {
    windows_.push_back({windows_.back().to_ns, std::numeric_limits<std::int64_t>::max()});
  }
  join(windows_);
  followed_ = common(followed_, windows_);
}

void RankLines::end() {
  stage_messages_.end();
  facts_.too_many_lines = too_many_;
  facts_.messages = stage_messages_.of_stages();
  facts_.exchanged = stage_messages_.exchanged();
  if (!too_many_ && !computes_.empty()) {
    put_in_steps();
    leave_out_untimed();
    Spans communicates;
    Spans waits;
    for (const Collective& c : collectives_) {
      communicates.push_back(c.on_device);
      waits.push_back({c.on_device.from_ns, c.all_there_ns});
    }
    for (Spans* s : {&communicates, &waits, &computes_, &unsure_}) join(*s);
    if (!marked_) begin_behind_the_step_before(communicates);
    follow_in_windows();
    fill_cells(communicates, waits);
    count_reads();
    for (Step& s : steps_) {
      s.counts = s.counts && s.cell->known();
      facts_.steps += s.counts ? 1 : 0;
    }
    find_unmet();
  }
  // {} would keep their room, of all ranks.
  collectives_ = std::vector<Collective>();
  reads_ = std::vector<std::pair<std::int64_t, std::uint64_t>>();
  copies_on_device_ = Spans();
  called_ = std::vector<std::int64_t>();
  computes_ = Spans();
  unsure_ = Spans();
}

// A host may run steps ahead of its device. A step of the device begins where it is through with
// what was called in the step before; where the host waits for the device, that is the mark itself.
void RankLines::put_in_steps() {
  const auto unordered = std::ranges::adjacent_find(collectives_, std::ranges::greater_equal(),
                                                    &Collective::called_ns);
  if (unordered != collectives_.end()) {
    std::ranges::sort(collectives_, {}, &Collective::called_ns);
  }
  std::int64_t done = INT64_MIN;
  auto next = collectives_.begin();
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    Step& s = steps_[i];
    const auto called_before = [&](std::int64_t mark) {
      for (; next != collectives_.end() && next->called_ns < mark; ++next) {
        if (next->called_ns >= s.from_ns) next->step = i;
        done = std::max(done, next->on_device.to_ns);
      }
      return std::max(mark, done);
    };
    s.on_device.from_ns = called_before(s.from_ns);
    s.on_device.to_ns = called_before(s.to_ns);
  }
}

// A host that is late with a batch is so between two steps, if the program marks none, and the
// ranks that wait for it do so in the second. There it is late on all of them.
void RankLines::begin_behind_the_step_before(const Spans& communicates) {
  const Spans works = either(either(communicates, computes_), unsure_);
  join(copies_on_device_);
  const auto is_of_copy = [&](const Span& s) {
    const auto copy = first_behind(copies_on_device_, s.from_ns);
    return s.ns() < kMomentNs && copy != copies_on_device_.end() && copy->from_ns < s.to_ns;
  };
  // Behind the last of several steps the program does something else, as an evaluation. The device
  // works for that, too, before its first copy, where it was idle for far longer in front of it.
  const auto of_the_rest = [&](Spans::const_iterator s, std::int64_t to_ns, std::int64_t step) {
    if (s == works.begin()) return false;
    const std::int64_t idle = s->from_ns - std::prev(s)->to_ns;
    return idle > 10 * (to_ns - s->from_ns) && idle * kPartsOfStep > step;
  };
  const auto begin = [&](std::int64_t step_ns, std::int64_t least_ns, bool last) {
    std::int64_t from = step_ns;
    // The copy with which the step begins may have begun a moment before.
    auto s = first_behind(works, step_ns - 1);
    const bool busy = s != works.end() && s->from_ns < step_ns - kMomentNs;
    const std::int64_t length = step_ns - least_ns;
    if (busy && !(last && of_the_rest(s, step_ns, length))) return step_ns;
    while (s != works.begin() && (--s)->to_ns > least_ns) {
      from = s->to_ns;
      if (!is_of_copy(*s) && !(last && of_the_rest(s, s->to_ns, length))) break;
    }
    return from;
  };
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    Span& s = steps_[i].on_device;
    const bool last = i + 1 == steps_.size() || steps_[i + 1].from_ns != steps_[i].to_ns;
    s.to_ns = begin(s.to_ns, s.from_ns, last);
    if (!last) steps_[i + 1].on_device.from_ns = s.to_ns;
  }
}

void RankLines::fill_cells(const Spans& communicates, const Spans& waits) {
  const Spans both = common(communicates, computes_);
  const Spans both_waits = common(waits, computes_);
  Cover computing(computes_);
  Cover unsure(unsure_);
  Cover communicating(communicates);
  Cover waiting(waits);
  Cover hidden(both);
  Cover hidden_waits(both_waits);
  Cover followed(followed_);
  bool known_before = true;
  for (const Step& s : steps_) {
    const std::int64_t from = s.on_device.from_ns;
    const std::int64_t to = s.on_device.to_ns;
    const auto in = [&](Cover& cover) { return cover(from, to); };
    // When a window begins, the device may still do what was called before it.
    const bool follows = to > from && in(followed)*10 >= (to - from) * 9;
    const bool began = std::exchange(known_before, follows || windows_.empty());
    if (s.untimed || !follows || !began) continue;
    // Not every window ends with a line. In a step between two of them nothing is seen to run.
    const std::int64_t unknown = in(unsure);
    const bool runs = in(computing) + in(communicating) > 0;
    if (!runs || unknown * 10 > (to - from) * 9) continue;
    const std::int64_t together = in(hidden);
    Cell& cell = *s.cell;
    cell.length = static_cast<float>(to - from);
    cell.behind_ns = from - s.from_ns;
    cell.compute = static_cast<float>(in(computing));
    cell.unsure = static_cast<float>(unknown);
    cell.hidden = static_cast<float>(together);
    cell.exposed = static_cast<float>(in(communicating)-together);
    cell.missing = static_cast<float>(in(waiting));
    cell.wait = static_cast<float>(in(waiting)-in(hidden_waits));
  }
}

// Values that are read, and checkpoints that are written, when the device has done all of a step
// are of the time until the next one.
void RankLines::count_reads() {
  std::ranges::sort(reads_);
  auto step = steps_.begin();
  for (const auto& [called, bytes] : reads_) {
    while (step != steps_.end() && step->to_ns <= called) ++step;
    if (step == steps_.end() || called < step->from_ns) continue;
    const auto next = std::next(step);
    const bool behind = !marked_ && step->cell->known() && called >= step->on_device.to_ns &&
                        next != steps_.end() && next->from_ns == step->to_ns;
    Cell& c = *(behind ? next : step)->cell;
    c.to_host += static_cast<float>(bytes);
    ++c.reads;
  }
}

void RankLines::find_unmet() {
  if (std::ranges::all_of(collectives_, &Collective::met)) return;
  Spans met;
  for (const Collective& c : collectives_) {
    if (c.met) met.push_back({c.on_device.from_ns, c.all_there_ns});
  }
  join(met);
  const Spans both = common(met, computes_);
  Cover waiting(met);
  Cover hidden(both);
  for (const Step& s : steps_) {
    if (!s.counts) continue;
    const auto [from, to] = s.on_device;
    facts_.unmet_ns += std::llround(s.cell->wait) - (waiting(from, to) - hidden(from, to));
  }
}

}  // namespace tprof::why
