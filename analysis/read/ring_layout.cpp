#include "read/ring_layout.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "read/error.h"

namespace tprof::read {
namespace {

struct Part {
  std::uint64_t offset;
  std::uint64_t size;
};

class Parts {
 public:
  explicit Parts(const View& view) : view_(view) { parts_.push_back({0, sizeof(Head)}); }

  // Parts beyond the end of the file were memory that is gone.
  template <typename T>
  void add(std::uint64_t offset, std::uint64_t n = 1) {
    if (view_.at<T>(offset, n) != nullptr) parts_.push_back({offset, n * sizeof(T)});
  }
  template <typename T>
  void add_table(const Table& table) {
    for (const std::uint64_t chunk : table.chunk) add<T>(chunk, kChunkEntries);
  }
  bool overlap() {
    std::ranges::sort(parts_, {}, &Part::offset);
    const auto into_the_next = [](const Part& a, const Part& b) {
      return b.offset - a.offset < a.size;
    };
    return std::ranges::adjacent_find(parts_, into_the_next) != parts_.end();
  }

 private:
  View view_;
  std::vector<Part> parts_;
};

bool parts_overlap(const View& view) {
  Parts parts(view);
  for (std::uint32_t i = 0; i < view.threads(); ++i) {
    const ThreadArea* t = view.thread(i);
    if (t == nullptr) continue;
    parts.add<ThreadArea>(view.head().thread[i]);
    if (view.ring(*t) != nullptr) parts.add<Record>(t->ring, t->capacity);
    for (std::uint32_t level = 0; level < kLedgerLevels; ++level) {
      parts.add<LedgerRow>(t->level[level], ledger_level_rows(level));
    }
  }
  parts.add_table<Communicator>(view.head().comms);
  parts.add_table<Graph>(view.head().graphs);
  return parts.overlap();
}

bool is_name(const char (&name)[sizeof Function::name]) {
  const std::string_view text(name, strnlen(name, sizeof name));
  return std::ranges::all_of(text,
                             [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

}  // namespace

void check_layout(const std::filesystem::path& file, const View& view) {
  if (parts_overlap(view)) throw BadInput(file, "parts of it overlap: not a ring file, or damaged");
  const Head& head = view.head();
  for (std::uint32_t i = 0; i < view.functions(); ++i) {
    if (!is_name(head.function[i].name)) {
      throw BadInput(file,
                     "function " + std::to_string(i) +
                         " has no name that a function can have: not a ring file, or damaged");
    }
  }
}

}  // namespace tprof::read
