// Makes lines of a world's rings as the writer does, without its thread and file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "interpose/format/commit.h"
#include "interpose_world.h"

namespace tprof::test {

class FakeWriter {
 public:
  explicit FakeWriter(const View& view)
      : view_(view),
        progress_(std::make_unique<Progress>(committed_block(view.head())->progress)) {}

  // Lines go to the file first, and are true once committed.
  void drain(std::string& file) {
    Drain drain(view_);
    bool more = true;
    while (more) {
      Text text;
      std::uint64_t events = 0;
      more = !drain.run(text, *progress_, events);
      file.resize(progress_->offset);
      file += text.view();
      progress_->offset = file.size();
      commit_progress(view_.head(), *progress_);
      for (std::uint32_t i = 0; i < view_.threads(); ++i) {
        view_.thread(i)->tail = progress_->tail[i];
      }
    }
  }
  const Progress& progress() const { return *progress_; }

 private:
  View view_;
  std::unique_ptr<Progress> progress_;
};

// Recovers as a reader does after a kill: cuts the file at the commit block and replays the ring.
inline std::string recovered(const View& live, const std::string& file) {
  auto* base = reinterpret_cast<std::byte*>(&live.head());
  std::vector<std::byte> memory(base, base + live.head().used.load());
  const View view(memory.data(), memory.size());
  std::string whole = file.substr(0, committed_block(view.head())->progress.offset);
  FakeWriter(view).drain(whole);
  return whole;
}

inline std::uint64_t count_lines(const std::string& lines, std::string_view phase) {
  std::uint64_t n = 0;
  for (const std::string& line : split_lines(lines)) {
    n += line.find("\"ph\":\"" + std::string(phase) + "\"") != std::string::npos;
  }
  return n;
}

}  // namespace tprof::test
