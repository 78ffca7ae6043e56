#include "interpose/write/sinks.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "interpose/base/clock.h"
#include "interpose/base/disk_space.h"
#include "interpose/format/file_names.h"
#include "interpose/write/last_calls.h"

namespace tprof {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kEveryNs = 10 * kSecond;
constexpr std::uint64_t kLongestNs = 60 * kSecond;  // while nothing changes
constexpr std::uint64_t kStoodNs = kSecond;

// Returns a number that changes when a call begins or ends.
std::uint64_t changes_in(const View& view) {
  std::uint64_t sum = View::entries(view.head().comms);
  view.each_thread([&](const ThreadArea& t, std::uint32_t) {
    sum += t.committed.load(std::memory_order_relaxed) + t.head.load(std::memory_order_relaxed);
  });
  return sum;
}

}  // namespace

void Snapshot::begin(LineBatch& lines, const SinkStart& start) {
  file_ = own_file(start.snapshot);
  entry_.base_real_ns = lines.view.head().base_real_ns;
  written_ns_ = start.now_ns;
  every_ns_ = kEveryNs;
}

void Snapshot::tick(LineBatch& lines, const ClockAnchor& now) {
  if (!due(lines.view, now.mono_ns)) return;
  lines.begin();
  for (FileLines& of_window : lines.next.written.file) {
    of_window.complete = of_window.window;  // no more lines for it
    of_window.calls = kCallsUnknown;        // there may be more when this is read
  }
  lines.open_calls(false);
  LastCalls last;
  last.add_threads(lines.view);
  last.lines(lines.out(), lines.view, lines.next.tid);
  lines.end(now.mono_ns, false, Complete::snapshot);
  if (!lines.out().failed()) write(lines.out().view(), lines.offset());
}

bool Snapshot::due(const View& view, std::uint64_t now_ns) {
  if (file_.fd < 0 || now_ns - written_ns_ < kStoodNs) return false;
  std::uint64_t stood = stood_ns_;
  const auto look = [&](const Record& r, const auto&) {
    if (r.start_ns + kStoodNs <= now_ns && r.start_ns > stood) stood = r.start_ns;
  };
  each_open_call(view, look);
  each_phase(view, look);
  const std::uint64_t changes = changes_in(view);
  const std::uint64_t every = changes == changes_ ? every_ns_ : kEveryNs;
  if (stood == stood_ns_ && now_ns - written_ns_ < every) return false;
  every_ns_ = changes == changes_ ? std::min(2 * every, kLongestNs) : kEveryNs;
  stood_ns_ = stood;
  changes_ = changes;
  written_ns_ = now_ns;
  return true;
}

void Snapshot::write(std::string_view text, std::uint64_t cut) {
  if (!file_.still_ours()) return;  // the program closed it
  SnapshotEntry next = entry_;
  std::memcpy(next.magic, kSnapshotMagic, sizeof next.magic);
  ++next.generation;
  next.cut = cut;
  next.length = text.size();
  next.offset = kSnapshotTexts;
  if (entry_.length != 0 && kSnapshotTexts + text.size() > entry_.offset) {
    next.offset = entry_.offset + ((entry_.length + 4095) & ~std::uint64_t{4095});
  }
  next.text_sum = fnv1a(text);
  next.sum = checksum(next);
  if (!size_allowed(next.offset + next.length) || !write_all(file_.fd, text, next.offset) ||
      !write_all(file_.fd, {reinterpret_cast<const char*>(&next), sizeof next},
                 snapshot_entry_at(next.generation))) {
    return;
  }
  entry_ = next;
  // Starts sending it to a file server, which would otherwise get it after up to half a minute.
  // Does not wait.
  sync_file_range(file_.fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

}  // namespace tprof
