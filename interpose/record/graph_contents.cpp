#include "interpose/record/graph_contents.h"

#include "interpose/base/clock.h"
#include "interpose/record/tables.h"
#include "interpose/record/transaction.h"

namespace tprof::graph_contents {
namespace {

// Contents that are in the file, by two hashes of their calls.
struct Entry {
  std::uint64_t first, second;
  std::uint32_t index;
};
Pages<Entry> g_contents;
std::size_t g_executables;
std::uint32_t g_rows;

// Half of the table is for contents alone. When the other half is full, launches name contents.
constexpr std::size_t kMaxExecutables = std::size_t{kTableChunks} * kChunkEntries / 2;
// The rest of the ledger is for calls.
constexpr std::uint32_t kMaxRows = 65536;

std::uint32_t find(std::uint64_t first, std::uint64_t second) {
  for (std::size_t i = g_contents.size(); i-- != 0;) {
    const Entry& e = g_contents.data()[i];
    if (e.first == first && e.second == second) return e.index;
  }
  return 0;
}

std::uint32_t add(GraphKind kind, std::uint32_t source) {
  Graph entry{};
  entry.kind = kind;
  entry.source = source;
  entry.made_ns = now_ns();
  entry.complete.store(kind == GraphKind::content ? 0 : 1, std::memory_order_relaxed);
  return tables::append(session::mapping().head().graphs, entry, [](std::uint32_t) {});
}

LedgerKey::Words in_graph(LedgerKey::Words key, std::uint32_t index) {
  auto row = std::bit_cast<LedgerKey>(key);
  row.mode = Mode::in_graph;
  row.graph = index;
  return std::bit_cast<LedgerKey::Words>(row);
}

// Adds the rows of content `index`. False: there is no room for all of them, and none counts.
bool enter(Thread& t, std::span<const graphs::Call> calls, std::uint32_t index) {
  Transaction transaction(t);
  for (const graphs::Call& call : calls) {
    LedgerRow* row = find_own_row(t, in_graph(call.key, index));
    if (row == nullptr) g_rows = kMaxRows;
    if (g_rows >= kMaxRows) break;
    LedgerValues& v = transaction.values(*row);
    g_rows += v.calls++ == 0 ? 1 : 0;
    v.count += call.count;
  }
  if (g_rows < kMaxRows) return true;
  for (const graphs::Call& call : calls) {
    LedgerRow* row = find_own_row(t, in_graph(call.key, index));
    if (row != nullptr) transaction.values(*row) = {};
  }
  return false;
}

std::uint32_t content_of(Thread& t, std::span<const graphs::Call> calls) {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  for (const graphs::Call& call : calls) {
    const std::uint64_t h = mix64(call.key.low ^ mix64(call.key.high ^ mix64(call.count)));
    first += h;
    second += mix64(~h);
  }
  if (const std::uint32_t known = find(first, second)) return known;
  if (g_rows >= kMaxRows) return 0;
  const std::uint32_t index = add(GraphKind::content, 0);
  if (index == 0) return 0;
  const bool whole = enter(t, calls, index);
  auto* entry = const_cast<Graph*>(session::mapping().view().graph(index));
  entry->complete.store(1, std::memory_order_release);
  if (!whole) return 0;
  g_contents.push_back({first, second, index});
  return index;
}

}  // namespace

std::uint32_t entry_of(Thread& t, std::span<const graphs::Call> calls, bool new_executable) {
  const std::uint32_t content = content_of(t, calls);
  if (content == 0 || !new_executable || g_executables >= kMaxExecutables) return content;
  const std::uint32_t index = add(GraphKind::executable, content);
  g_executables += index == 0 ? 0 : 1;
  return index == 0 ? content : index;
}

void forget_all() {
  g_contents.release();
  g_executables = 0;
  g_rows = 0;
}

}  // namespace tprof::graph_contents
