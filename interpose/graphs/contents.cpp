#include "interpose/graphs/contents.h"

#include "interpose/base/clock.h"
#include "interpose/capture/tables.h"

namespace tprof::graph_contents {
namespace {

// Entries that are in the file: of a content by two hashes of its calls, of an executable by its
// life and its content.
struct Entry {
  std::uint64_t first, second;
  std::uint32_t index;
};
Pages<Entry> g_contents;
Pages<Entry> g_executables;
std::uint32_t g_rows;

// Half of the table is for contents alone: then launches name these.
constexpr std::size_t kMaxExecutables = std::size_t{kTableChunks} * kChunkEntries / 2;
// A row that finds no place would be added to another one's, and replayed with that (thread.cpp).
constexpr std::uint32_t kMaxRows = 65536;

std::uint32_t find(const Pages<Entry>& entries, std::uint64_t first, std::uint64_t second) {
  for (std::size_t i = entries.size(); i-- != 0;) {
    const Entry& e = entries.data()[i];
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
  constexpr int kModeShift = 24;
  constexpr std::uint64_t kModeBits = std::uint64_t{0xff} << kModeShift;
  const auto mode = static_cast<std::uint64_t>(Mode::in_graph) << kModeShift;
  return {(key.low & ~kModeBits) | mode, key.high | std::uint64_t{index} << 32};
}

std::uint32_t content_of(Thread& t, GraphModel& model, GraphId graph, std::uint32_t& unseen) {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  unseen = model.each_call(graph, [&](const GraphNode& call) {
    const std::uint64_t h = mix64(call.key.low ^ mix64(call.key.high ^ mix64(call.count)));
    first += h;
    second += mix64(~h);
  });
  if (const std::uint32_t known = find(g_contents, first, second)) return known;
  if (g_rows >= kMaxRows) return 0;
  const std::uint32_t index = add(GraphKind::content, 0);
  if (index == 0) return 0;
  {
    Transaction transaction(t);
    model.each_call(graph, [&](const GraphNode& call) {
      LedgerValues& v = transaction.values(in_graph(call.key, index));
      g_rows += v.calls++ == 0 ? 1 : 0;
      v.count += call.count;
    });
  }
  auto* entry = const_cast<Graph*>(session::mapping().view().graph(index));
  entry->complete.store(1, std::memory_order_release);
  g_contents.push_back({first, second, index});
  return index;
}

}  // namespace

std::uint32_t entry_of(Thread& t, GraphModel& model, GraphId executable, std::uint32_t& unseen) {
  const std::uint32_t content = content_of(t, model, executable, unseen);
  if (content == 0) return 0;
  const std::uint64_t life = model.graph(executable).life;
  if (const std::uint32_t known = find(g_executables, life, content)) return known;
  if (g_executables.size() >= kMaxExecutables) return content;
  const std::uint32_t index = add(GraphKind::executable, content);
  if (index == 0) return content;
  g_executables.push_back({life, content, index});
  return index;
}

void forget_all() {
  g_contents.release();
  g_executables.release();
  g_rows = 0;
}

}  // namespace tprof::graph_contents
