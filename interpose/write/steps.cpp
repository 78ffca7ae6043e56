#include "interpose/write/steps.h"

#include <algorithm>
#include <string_view>

#include "interpose/base/clock.h"
#include "interpose/write/range_lines.h"

namespace tprof {

const std::uint64_t* Steps::begin(const Progress& p, const std::uint64_t* last) {
  find_marks(p, last != nullptr);
  for (std::uint32_t i = 0; last != nullptr && i < kMaxThreads; ++i) {
    limit_[i] = std::min(limit_[i], last[i]);
  }
  return limit_;
}

void Steps::record(const Record& r, const ThreadArea& t) {
  if (!wanted()) return;
  const StepInterval* step = steps_.at(r.start_ns);
  if (step == nullptr) return;
  LedgerKey key{};
  if (r.function == kMetaLaunch) {
    if (r.result == 0) key.function = kMetaLaunch;
  } else if (view_.function(r.function) != nullptr && accepted(r.bucket, r.result) &&
             r.captured == 0) {
    key = key_of(view_, r);
    key.thread = kind_of_calls(key, t);
  }
  if (key.function != 0) rows_.add(*step, key, r.count, r.dur_ns);
}

void Steps::end(Text& out, Progress& p) {
  if (!wanted()) return;
  const std::uint64_t quota = view_.head().quota / kStepQuotaDivisor;
  const std::uint64_t lost = records_lost();
  if (lost != lost_before_) lost_until_ns_ = now_ns();
  lost_before_ = lost;
  StepInterval step;
  while (steps_.take(std::min(began_ns_, oldest_open_ns_), step)) {
    const bool whole = rows_.take(step, totals_);
    std::uint64_t launches = 0;
    for (const Total& t : totals_) {
      if (t.key.function == kMetaLaunch) launches += t.values.calls;
    }
    const std::size_t before = out.size();
    step_line(out, view_, step, totals_, launches, step.from_ns <= lost_until_ns_ || !whole,
              finds_);
    const std::uint64_t bytes = out.size() - before;
    const bool fits = quota == 0 || p.written.step_bytes + bytes <= quota;
    fits ? void(p.written.step_bytes += bytes) : out.cut(before);
    ++(fits ? p.written.steps : p.steps_dropped);
  }
}

void Steps::find_marks(const Progress& p, bool last) {
  began_ns_ = now_ns();
  if (windows_.adopt() && windows_.wanted() && !seen_) finds_ = mark_.by == StepBy::automatic;
  if (!wanted()) {
    for (std::uint64_t& limit : limit_) limit = UINT64_MAX;
    return;
  }
  oldest_open_ns_ = began_ns_;
  each_open_call(view_, [&](const Record& r, const ThreadArea&) {
    oldest_open_ns_ = std::min(oldest_open_ns_, r.start_ns);
  });
  view_.each_thread([&](const ThreadArea& t, std::uint32_t i) {
    limit_[i] = t.head.load(std::memory_order_acquire);
  });
  const bool ranges = mark_.by == StepBy::automatic || mark_.by == StepBy::range;
  if (ranges) {
    // Open ranges first: one that is closed meanwhile is then found in its ring.
    steps_.forget_seen();
    each_open_range(view_, [&](const OpenRange& r, bool) { add_range(r, StepInterval::kOpen); });
  }
  if (mark_.by != StepBy::period) {
    view_.each_thread([&](const ThreadArea& t, std::uint32_t i) {
      limit_[i] = std::min(limit_[i], scan(t, p.tail[i]));
    });
  }
  if (ranges) add_marked();
  if (finds_) find(p, last);
  if (ranges && !by_marks_ && !finds_) steps_.drop_unseen();
  windows_.follow(steps_.all(), mark_.by == StepBy::call || seen_ || by_marks_);
}

std::uint64_t Steps::records_lost() const {
  std::uint64_t lost = 0;
  view_.each_row([&](const LedgerRow& row, const ThreadArea& t) {
    const std::uint8_t function = key_of(row).function;
    if (function == kMetaDropped || function == kMetaRangeDropped) {
      lost += read_row(row, t.committed).calls;
    }
  });
  return lost;
}

void Steps::add_range(const OpenRange& r, std::uint64_t to_ns) {
  std::int64_t number = -1;
  if (!is_step(mark_, range_name(r), number)) return;
  if (finds_) steps_.abandon();
  finds_ = false;
  seen_ = true;
  marked_.push_back({number, r.start_ns, to_ns});
}

void Steps::add_marked() {
  if (marked_.size() == 0) return;
  const std::uint64_t lost = records_lost();
  std::sort(marked_.begin(), marked_.end(),
            [](const Marked& a, const Marked& b) { return a.from_ns < b.from_ns; });
  for (const Marked& m : marked_) {
    steps_.add(m.number, m.from_ns, m.to_ns, lost != lost_at_mark_);
  }
  marked_.clear();
  lost_at_mark_ = lost;
}

void Steps::find(const Progress& p, bool last) {
  constexpr std::uint64_t kStands = 1'000'000'000;
  const std::uint64_t before_ns =
      last ? UINT64_MAX : std::max(oldest_open_ns_, began_ns_ - kStands);
  operations_.each_new(p, before_ns, [&](const Operation& op) {
    const bool found = repeats_.found();
    const bool ends = repeats_.ends_step(op);
    if (!found && repeats_.found()) steps_.had_ended(repeats_.earlier());
    if (ends) {
      steps_.cut(-1, op.end_ns + 1);
    } else if (found && !repeats_.found()) {
      steps_.abandon();
    }
  });
  view_.each_thread([&](const ThreadArea&, std::uint32_t i) {
    limit_[i] = std::min(limit_[i], operations_.given(i));
  });
}

std::uint64_t Steps::scan(const ThreadArea& t, std::uint64_t from) {
  const RingNow ring = view_.ring_now(t);
  if (ring.record == nullptr) return from;
  if (ring.overrun(from)) return ring.head;
  for (std::uint64_t n = from; n < ring.head; ++n) {
    const Record r = ring[n];
    if (!ring.closed(r)) return n;
    if (mark_.by == StepBy::call) {
      end_of_call(r);
    } else if (r.function == kMetaRange) {
      closed_range(r, ring, n);
    }
  }
  return ring.head;
}

void Steps::end_of_call(const Record& r) {
  const Function* f = view_.function(r.function);
  if (f == nullptr || bounded_text(f->name) != mark_.name) return;
  if (mark_.count != 0 && r.count != mark_.count) return;
  if (r.captured || !accepted(r.bucket, r.result)) return;
  const std::uint64_t end = r.start_ns + r.dur_ns;
  steps_.cut(-1, end + 1);
}

void Steps::closed_range(const Record& first, const RingNow& ring, std::uint64_t n) {
  RangeRecord r;
  std::memcpy(&r, &first, sizeof r);
  OpenRange range{};
  if (!read_range(ring, r, ++n, range)) return;
  if (static_cast<RangeKind>(r.kind) != RangeKind::mark) {
    add_range(range, r.start_ns + r.dur_ns);
  } else if (mark_.by == StepBy::range) {
    std::int64_t number = -1;
    if (!is_step(mark_, range_name(range), number)) return;
    by_marks_ = true;
    steps_.cut(number, r.start_ns);
  }
}

}  // namespace tprof
