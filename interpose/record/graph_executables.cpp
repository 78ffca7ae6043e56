// The part of graphs.h that is about executable graphs.
#include "interpose/base/shared_map.h"
#include "interpose/format/coverage.h"
#include "interpose/record/graph_captures.h"
#include "interpose/record/graph_contents.h"
#include "interpose/session/coverage.h"

namespace tprof::graphs {
namespace {

// Maps a cudaGraphExec_t to its entry in the mapped file and, above kUnseenShift, to what is unseen
// of it and not reported yet. It is read without the lock.
constinit SharedMap<std::uint32_t> g_executables{LockOrder::handles};
constexpr int kUnseenShift = 16;
constexpr std::uint32_t kEntryBits = (1U << kUnseenShift) - 1;
static_assert(kTableChunks * kChunkEntries <= kEntryBits);

void note(std::uint32_t unseen, std::uint32_t which, Note what) {
  if ((unseen & which) != 0) coverage::note(session::mapping().head(), what, "cudaGraphLaunch");
}

// Returns how many calls it executes.
std::size_t set_contents(Thread& t, cudaGraphExec_t executable, cudaGraph_t graph, bool is_new) {
  Pages<Call> calls;
  std::uint32_t unseen = contents_of(graph, t.device, calls);
  const LockGuard guard(g_lock);
  const std::uint32_t entry =
      calls.failed() ? 0 : graph_contents::entry_of(t, {calls.data(), calls.size()}, is_new);
  if (entry == 0) unseen |= kUnseenPart;
  g_executables.insert(executable, entry | unseen << kUnseenShift);
  return calls.size();
}

}  // namespace

void instantiated(Thread& t, cudaGraphExec_t executable, cudaGraph_t graph, bool for_device) {
  const std::size_t calls = set_contents(t, executable, graph, true);
  if (!for_device || calls == 0) return;
  coverage::note(session::mapping().head(), Note::graph_device_launch, "cudaGraphInstantiate");
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
  note(unseen, kUnseenPart, Note::graph_unknown);
  note(unseen, kUnseenConditional, Note::graph_conditional);
  if (entry != 0) g_executables.insert(executable, entry);  // reported: later launches need not ask
  return entry;
}

void forget_all() {
  forget_captures();
  g_executables.clear();
  graph_contents::forget_all();
}

}  // namespace tprof::graphs
