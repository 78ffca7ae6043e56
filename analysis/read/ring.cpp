#include "read/ring_file.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "interpose/base/clock.h"
#include "interpose/format/commit.h"
#include "interpose/write/drain.h"
#include "interpose/write/last_calls.h"
#include "read/error.h"

namespace tprof::read {
namespace {

constexpr std::uint64_t kNewest = 16;  // records of a thread; the last ones may be no calls

// Copies the committed state. Retries if a live process replaced it meanwhile.
std::unique_ptr<Progress> committed_progress(const RingFile& ring) {
  auto progress = std::make_unique<Progress>();
  for (;;) {
    const CommitBlock* block = committed_block(ring.view().head());
    if (block == nullptr) throw BadInput(ring.path(), "no commit block is complete");
    const std::uint64_t generation = block->generation.load(std::memory_order_acquire);
    std::memcpy(progress.get(), &block->progress, sizeof *progress);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (block->generation.load(std::memory_order_relaxed) == generation) return progress;
  }
}

// Returns the last sign of life of a dead process: its latest closed call, or its writer.
std::uint64_t last_ns(const View& view) {
  std::uint64_t last =
      std::max(view.head().base_mono_ns, view.head().alive_ns.load(std::memory_order_relaxed));
  for (std::uint32_t i = 0; i < view.threads(); ++i) {
    const ThreadArea* t = view.thread(i);
    const Record* ring = t == nullptr ? nullptr : view.ring(*t);
    if (ring == nullptr) continue;
    for (std::uint64_t n = 0; n < t->capacity; ++n) {
      if (ring[n].function == kMetaThread || ring[n].start_ns == 0) continue;
      last = std::max(last, ring[n].start_ns + ring[n].dur_ns);
    }
  }
  return last;
}

// True if a thread has begun to overwrite the records from `from` on.
bool overwritten(const View& view, const Progress& from) {
  std::atomic_thread_fence(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < view.threads(); ++i) {
    const ThreadArea* t = view.thread(i);
    if (t == nullptr || t->capacity == 0) continue;
    if (t->head.load(std::memory_order_acquire) - from.tail[i] >= t->capacity) return true;
  }
  return false;
}

// Collects the lines of windows' files, and completes each file: a dead process no longer can. For
// a live one this gives the file as it is now.
class Windows {
 public:
  Windows(Drain& drain, std::filesystem::path rank_file)
      : drain_(drain), rank_file_(std::move(rank_file)) {}

  // A dead process's file gets no more lines if it already has its final name, or is not here. A
  // live process's files are left alone: it may have named one after its last commit.
  void begin(bool running) {
    for (FileLines& file : drain_.next.written.file) {
      const bool begun = file.window != 0 && file.offset != 0;
      if (!running && begun && !std::filesystem::exists(path(file, kUnfinishedFile))) {
        file.complete = 1;
      }
    }
  }

  void take() {
    for (std::size_t n = kRankFile + 1; n < kLineFiles; ++n) {
      lines_[n].append(drain_.text[n].view());
      drain_.text[n].clear();
    }
  }

  // False: all are complete.
  bool complete_oldest() {
    const std::size_t n = oldest_window_file(drain_.next.written);
    if (n < kLineFiles) complete(drain_.next.written.file[n], lines_[n]);
    return n < kLineFiles;
  }

  std::map<std::string, Rest> files() && { return std::move(files_); }

 private:
  std::string name_of(const FileLines& file) const {
    char name[320];
    FixedText text(name);
    window_file_name(text, drain_.view, file);
    return std::filesystem::path(name).filename().string();
  }
  std::filesystem::path path(const FileLines& file, std::string_view end) const {
    return rank_file_.parent_path() / (name_of(file) + std::string(end));
  }

  void complete(FileLines& file, std::string& lines) {
    while (file.offset == 0 && file.attempt < 1000 && std::filesystem::exists(path(file, ""))) {
      ++file.attempt;
    }
    Text end;
    window_file_end(end, drain_.view, file);
    files_[name_of(file)] = {file.offset, std::exchange(lines, {}).append(end.view())};
    file.complete = 1;
  }

  Drain& drain_;
  std::filesystem::path rank_file_;
  std::string lines_[kLineFiles];
  std::map<std::string, Rest> files_;
};

// Appends the lines of records that have none yet. False if a live process has overwritten some
// meanwhile, after writing their lines itself.
bool drain_all(Drain& drain, bool running, std::string& lines, Windows& windows) {
  const auto from = std::make_unique<Progress>(drain.next);
  const auto take = [&] {
    lines.append(drain.out().view());
    drain.out().clear();
    windows.take();
  };
  windows.begin(running);
  drain.windows(WindowLines::complete);
  while (!drain.run()) {
    take();
    if (!drain.file_wanted()) continue;
    windows.complete_oldest();
    drain.windows(WindowLines::complete);
  }
  take();
  return !running || !overwritten(drain.view, *from);
}

}  // namespace

std::uint64_t committed_bytes(const RingFile& ring) {
  return committed_progress(ring)->written.file[kRankFile].offset;
}

Replay replay(const RingFile& ring, const std::filesystem::path& rank_file, Wanted wanted) {
  const View view = ring.view();
  Replay result;
  result.source.file = rank_file;
  result.running = ring.running();
  const bool partial = view.head().volatile_segments.load(std::memory_order_relaxed) != 0;

  // A process that makes a million calls a second may be too fast. Then its own writer writes the
  // lines; the counts are as of now in any case.
  const bool lines = wanted != Wanted::counts || !result.running;
  const int attempts = lines ? 20 : 0;
  const auto drain = std::make_unique<Drain>(view);
  std::unique_ptr<Windows> windows;
  bool drained = false;
  for (int i = 0; i <= attempts && !drained; ++i) {
    result.source.rest.clear();
    drain->next = *committed_progress(ring);
    for (Text& text : drain->text) text.clear();
    result.source.cut = drain->next.written.file[kRankFile].offset;
    windows = std::make_unique<Windows>(*drain, rank_file);
    drained = i < attempts && drain_all(*drain, result.running, result.source.rest, *windows);
  }
  while (windows->complete_oldest()) continue;
  result.source.unfinished = std::move(*windows).files();
  drain->open_calls(!result.running);
  // With Wanted::counts only the time of the last call is told.
  auto last = std::make_unique<LastCalls>();
  last->add_threads(view, lines ? UINT64_MAX : kNewest);
  last->lines(drain->out(), view, drain->next.tid);
  drain->end(result.running ? now_ns() : last_ns(view), !result.running,
             partial ? Complete::partial : Complete::no);
  result.source.rest.append(drain->out().view());
  return result;
}

}  // namespace tprof::read
