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
  explicit FakeWriter(const View& view) : drain_(std::make_unique<Drain>(view)) {
    drain_->next = committed_block(view.head())->progress;
  }

  // Lines go to the file first, and are true once committed.
  void drain(std::string& file) {
    std::uint64_t& offset = drain_->next.written.file[kRankFile].offset;
    bool more = true;
    while (more) {
      more = !drain_->run();
      file.resize(offset);
      file += drain_->out().view();
      drain_->out().clear();
      offset = file.size();
      commit_progress(drain_->view.head(), progress());
      for (std::uint32_t i = 0; i < drain_->view.threads(); ++i) {
        drain_->view.thread(i)->tail = progress().tail[i];
      }
    }
  }
  const Progress& progress() const { return drain_->next; }

 private:
  std::unique_ptr<Drain> drain_;
};

// Recovers as a reader does after a kill: cuts the file at the commit block and replays the ring.
inline std::string recovered(const View& live, const std::string& file) {
  auto* base = reinterpret_cast<std::byte*>(&live.head());
  std::vector<std::byte> memory(base, base + live.head().used.load());
  const View view(memory.data(), memory.size());
  std::string whole =
      file.substr(0, committed_block(view.head())->progress.written.file[kRankFile].offset);
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
