#include "interpose/record/graphs.h"

#include <algorithm>
#include <span>

#include "interpose/api/functions.h"
#include "interpose/base/clock.h"
#include "interpose/base/shared_map.h"
#include "interpose/format/coverage.h"
#include "interpose/real/copy_args.h"
#include "interpose/real/driver_graphs.h"
#include "interpose/record/tables.h"
#include "interpose/record/transaction.h"
#include "interpose/session/coverage.h"

namespace tprof::graphs {
namespace {

using graph_driver::NodeKind;

// Guards everything below. Never held during a call of the driver.
Lock g_lock{LockOrder::graphs};

// Calls captured into graphs, by the program's handles of the graphs.
struct CapturedCall {
  cudaGraph_t graph;
  Call call;
};
Pages<CapturedCall> g_calls;

// A graph with one capture, seen from its beginning.
struct Captured {
  cudaGraph_t graph;
  const void* on;  // where that capture began; null once it has ended
};
Pages<Captured> g_captured;

void forget_calls(cudaGraph_t graph) {
  g_calls.erase_if([&](const CapturedCall& c) { return c.graph == graph; });
}
void forget(cudaGraph_t graph) {
  forget_calls(graph);
  g_captured.erase_if([&](const Captured& c) { return c.graph == graph; });
}

// All threads have the same handle for their per-thread streams, so the thread stands for its
// stream.
const void* origin(const Thread& t, cudaStream_t stream) {
  return stream == cudaStreamPerThread ? static_cast<const void*>(&t) : stream;
}

// Appends the calls captured into `graph`. True: its only capture was seen from its beginning, so
// every NCCL kernel in it belongs to one of the calls.
bool captured_calls(cudaGraph_t graph, Pages<Call>& calls) {
  const LockGuard guard(g_lock);
  for (const CapturedCall& captured : g_calls) {
    if (captured.graph == graph) calls.push_back(captured.call);
  }
  const auto same = [&](const Captured& c) { return c.graph == graph; };
  return std::ranges::any_of(g_captured, same) && !g_calls.failed() && !calls.failed();
}

// Reasons why a launch is not counted completely; both can apply. kUnseenPart: it has copies or
// NCCL kernels of calls that we did not see captured, child graphs, or unknown kinds of nodes. The
// other: the device decides how often bodies of conditional nodes run.
constexpr std::uint32_t kUnseenPart = 1;
constexpr std::uint32_t kUnseenConditional = 2;

bool nodes_of(cudaGraph_t graph, Pages<const void*>& nodes) {
  const std::ptrdiff_t count = graph_driver::nodes_of(graph, nullptr, 0);
  for (std::ptrdiff_t i = 0; i < count; ++i) nodes.push_back(nullptr);
  if (count < 0 || nodes.failed()) return false;
  return count == 0 || graph_driver::nodes_of(graph, nodes.data(), nodes.size()) == count;
}

// Appends the calls that one launch executes: those captured into the graph. Returns what is
// unseen, from the driver's list of its nodes.
std::uint32_t contents_of(cudaGraph_t graph, Pages<Call>& calls) {
  Pages<const void*> nodes;
  const bool seen_from_start = captured_calls(graph, calls);
  bool has_nccl = false;
  std::size_t copies[2] =
      {};  // captured ones whose nodes were not found: with the host, and within
  for (const Call& call : calls) {
    const Bucket bucket = std::bit_cast<LedgerKey>(call.key).bucket;
    has_nccl = has_nccl || !is_copy(bucket);
    if (is_copy(bucket) && call.count != 0) ++copies[bucket == Bucket::D2D ? 1 : 0];
  }
  if (!nodes_of(graph, nodes)) return seen_from_start ? 0 : kUnseenPart;
  std::uint32_t unseen = calls.failed() ? kUnseenPart : 0;
  for (const void* node : nodes) {
    switch (graph_driver::kind_of(node)) {
      case NodeKind::copy: {
        const bool within = graph_driver::copies_within_device(node);
        std::size_t& left = copies[within ? 1 : 0];
        if (left != 0) {
          --left;
        } else if (!within || !has_nccl) {  // NCCL itself copies within the device
          unseen |= kUnseenPart;
        }
        break;
      }
      case NodeKind::conditional:
        unseen |= kUnseenConditional;
        break;
      case NodeKind::kernel:
        // A call can have several kernels. If calls are known, all kernels belong to them.
        if ((unseen & kUnseenPart) == 0 && !seen_from_start && !has_nccl &&
            graph_driver::may_be_nccl(node)) {
          unseen |= kUnseenPart;
        }
        break;
      case NodeKind::child:
      case NodeKind::unknown:
        unseen |= kUnseenPart;
        break;
      case NodeKind::other:
        break;
    }
  }
  return unseen;
}

// The contents of graphs are rows in the mapped file, written before the first launch, so that a
// launch only increments a counter. Graphs with the same contents share one entry, so that a
// capture or update in every step does not fill the file.
constinit SharedMap<std::uint32_t> g_contents{LockOrder::handles};  // by a hash of the calls
std::size_t g_entries;
std::uint32_t g_rows;

// Half of the table is reserved for contents. When the other half is full, launches refer to
// contents.
constexpr std::size_t kMaxExecutables = std::size_t{kTableChunks} * kChunkEntries / 2;
// The rest of the ledger is for calls.
constexpr std::uint32_t kMaxRows = 65536;

std::uint32_t add(GraphKind kind, std::uint32_t source) {
  Graph entry{};
  entry.kind = kind;
  entry.source = source;
  entry.made_ns = now_ns();
  entry.complete.store(kind == GraphKind::content ? 0 : 1, std::memory_order_relaxed);
  return tables::append(session::mapping().head().graphs, entry);
}

LedgerKey::Words in_graph(LedgerKey::Words key, std::uint32_t index) {
  auto row = std::bit_cast<LedgerKey>(key);
  row.mode = Mode::in_graph;
  row.graph = index;
  return std::bit_cast<LedgerKey::Words>(row);
}

// Adds the rows of content `index`. Returns false if they do not all fit, and then none counts.
bool enter(Thread& t, std::span<const Call> calls, std::uint32_t index) {
  Transaction transaction(t);
  for (const Call& call : calls) {
    LedgerRow* row = find_own_row(t, in_graph(call.key, index));
    if (row == nullptr) g_rows = kMaxRows;
    if (g_rows >= kMaxRows) break;
    LedgerValues& v = transaction.values(*row);
    g_rows += v.calls++ == 0 ? 1 : 0;
    v.count += call.count;
  }
  if (g_rows < kMaxRows) return true;
  for (const Call& call : calls) {
    LedgerRow* row = find_own_row(t, in_graph(call.key, index));
    if (row != nullptr) transaction.values(*row) = {};
  }
  return false;
}

std::uint32_t content_of(Thread& t, std::span<const Call> calls) {
  std::uint64_t hash = 0;
  for (const Call& call : calls) {
    hash += mix64(call.key.low ^ mix64(call.key.high ^ mix64(call.count)));
  }
  hash = mix64(hash);
  std::uint32_t index = 0;
  if (g_contents.find(hash, index)) return index;
  if (g_rows >= kMaxRows) return 0;
  index = add(GraphKind::content, 0);
  if (index == 0) return 0;
  const bool whole = enter(t, calls, index);
  auto* entry = const_cast<Graph*>(session::mapping().view().graph(index));
  entry->complete.store(1, std::memory_order_release);
  if (!whole) return 0;
  g_contents.insert(hash, index);
  return index;
}

// Returns the entry for an executable graph of `calls`: a new one that refers to its content, for a
// `new_executable` while there is room, else the content's. 0: there is no room.
std::uint32_t entry_of(Thread& t, std::span<const Call> calls, bool new_executable) {
  const std::uint32_t content = content_of(t, calls);
  if (content == 0 || !new_executable || g_entries >= kMaxExecutables) return content;
  const std::uint32_t index = add(GraphKind::executable, content);
  g_entries += index == 0 ? 0 : 1;
  return index == 0 ? content : index;
}

// Maps a cudaGraphExec_t to its entry in the mapped file and, above kUnseenShift, to what is unseen
// and not yet reported. Read without the lock.
constinit SharedMap<std::uint32_t> g_executables{LockOrder::handles};
constexpr int kUnseenShift = 16;
constexpr std::uint32_t kEntryBits = (1U << kUnseenShift) - 1;
static_assert(kTableChunks * kChunkEntries <= kEntryBits);

// Returns how many calls it executes.
std::size_t set_contents(Thread& t, cudaGraphExec_t executable, cudaGraph_t graph, bool is_new) {
  Pages<Call> calls;
  std::uint32_t unseen = contents_of(graph, calls);
  const LockGuard guard(g_lock);
  const std::uint32_t entry =
      calls.failed() ? 0 : entry_of(t, {calls.data(), calls.size()}, is_new);
  if (entry == 0) unseen |= kUnseenPart;
  g_executables.insert(executable, entry | unseen << kUnseenShift);
  return calls.size();
}

}  // namespace

cudaGraph_t captured_into_slow(cudaStream_t stream) {
  return graph_driver::captured_into(stream);
}

void captured_call(cudaGraph_t graph, const Call& call) {
  if (graph == graph_driver::kNoGraph) return;
  const LockGuard guard(g_lock);
  g_calls.push_back({graph, call});
}

void capture_began(Thread& t, cudaStream_t stream, bool into_existing_graph) {
  cudaGraph_t graph = into_existing_graph ? nullptr : captured_into_slow(stream);
  if (graph == nullptr || graph == graph_driver::kNoGraph) return;
  const LockGuard guard(g_lock);
  forget(graph);  // we may have missed the end of an earlier graph with this handle
  g_captured.push_back({graph, origin(t, stream)});
}

void capture_ended(Thread& t, cudaStream_t stream, bool made) {
  const void* began_on = origin(t, stream);
  if (began_on == nullptr) return;  // the legacy stream can't be captured
  const LockGuard guard(g_lock);
  for (Captured& captured : g_captured) {
    if (captured.on != began_on) continue;
    captured.on = nullptr;
    if (made) continue;
    forget_calls(captured.graph);
    captured.graph = nullptr;
  }
  g_captured.erase_if([](const Captured& c) { return c.graph == nullptr; });
}

void destroying(cudaGraph_t graph) {
  const LockGuard guard(g_lock);
  forget(graph);
}

void instantiated(Thread& t, cudaGraphExec_t executable, cudaGraph_t graph, bool for_device) {
  const std::size_t calls = set_contents(t, executable, graph, true);
  if (!for_device || calls == 0) return;
  coverage::note(Note::graph_device_launch, "cudaGraphInstantiate");
}

void updated(Thread& t, cudaGraphExec_t executable, cudaGraph_t graph) {
  set_contents(t, executable, graph, false);
}

void destroying(cudaGraphExec_t executable) {
  g_executables.erase(executable);
}

std::uint32_t launchable(cudaGraphExec_t executable) {
  const std::uint32_t known = g_executables.find(executable);
  const std::uint32_t entry = known & kEntryBits;
  if (known == entry && entry != 0) [[likely]]
    return entry;
  const std::uint32_t unseen = known == 0 ? kUnseenPart : known >> kUnseenShift;
  const auto note = [&](std::uint32_t which, Note what) {
    if ((unseen & which) != 0) coverage::note(what, "cudaGraphLaunch");
  };
  note(kUnseenPart, Note::graph_unknown);
  note(kUnseenConditional, Note::graph_conditional);
  if (entry != 0) g_executables.insert(executable, entry);  // reported: later launches need not ask
  return entry;
}

void forget_all() {
  g_calls.release();
  g_captured.release();
  g_executables.clear();
  g_contents.clear();
  g_entries = 0;
  g_rows = 0;
}

}  // namespace tprof::graphs
