#include "interpose/graphs/scan.h"

#include <algorithm>

#include "interpose/capture/calls.h"
#include "interpose/driver/graphs.h"

namespace tprof::graphs {
namespace {

using graph_driver::NodeKind;

struct Told {
  const void* handle;
  NodeKind kind;
  bool known;  // the model has it
};
// Of one graph at a time, sorted by handle.
Pages<const void*> g_handles;
Pages<Told> g_told;

bool ask(const void* graph) {
  g_handles.clear();
  g_told.clear();
  const std::ptrdiff_t count = graph_driver::nodes_of(graph, nullptr, 0);
  if (count < 0) return false;
  for (std::ptrdiff_t i = 0; i < count; ++i) g_handles.push_back(nullptr);
  if (g_handles.failed()) return false;
  if (count != 0 && graph_driver::nodes_of(graph, g_handles.data(), g_handles.size()) != count) {
    return false;
  }
  for (const void* handle : g_handles) {
    g_told.push_back({handle, graph_driver::kind_of(handle), false});
  }
  std::sort(g_told.begin(), g_told.end(),
            [](const Told& a, const Told& b) { return a.handle < b.handle; });
  return !g_told.failed();
}

Told* told_of(const void* handle) {
  Told* at = std::lower_bound(g_told.begin(), g_told.end(), handle,
                              [](const Told& t, const void* h) { return t.handle < h; });
  return at != g_told.end() && at->handle == handle ? at : nullptr;
}

// As the driver's function that does so would have said it.
Call call_by(Fn fn, const CopyArgs& copy) {
  const auto device = static_cast<std::uint32_t>(t_thread.device) + 1;
  return {copy_key(fn, bucket_of(copy), copy.bytes, device, true), copy.bytes};
}

bool is_copy_call(const GraphNode& node) {
  return node.kind == GraphNode::Kind::call && is_copy(node);
}

// Where the bytes are others than what was said last; of a copy of which the driver alone told,
// also the direction.
void change_copy(GraphNode& node) {
  CopyArgs copy{};
  if (node.count == 0 || !graph_driver::copy_in(node.handle, copy)) return;
  const LedgerKey key = std::bit_cast<LedgerKey>(node.key);
  const bool by_driver = key.function == number(Fn::cuGraphAddMemcpyNode) ||
                         key.function == number(Fn::cuGraphMemcpyNodeSetParams);
  if (copy.bytes == node.count && (!by_driver || key.bucket == bucket_of(copy))) return;
  const Call now = call_by(Fn::cuGraphMemcpyNodeSetParams, copy);
  node.key = now.key;
  node.count = now.count;
}

struct Known {
  std::size_t nameless_copies = 0;  // of which no handle is known
  std::size_t nameless_children = 0;
  bool nccl = false;
};

// What we know of is told too, or has gone.
Known match(GraphId id) {
  Known known;
  GraphModel& model = g_graphs.model;
  for (std::uint32_t n = model.graph(id).first; n != 0; n = model.node(n).next) {
    GraphNode& node = model.node(n);
    if (node.kind == GraphNode::Kind::removed) continue;
    const bool copy = is_copy_call(node);
    const bool call = node.kind == GraphNode::Kind::call;
    if (node.handle == nullptr) {
      known.nameless_copies += copy && node.count != 0 ? 1 : 0;
      known.nameless_children += node.kind == GraphNode::Kind::child ? 1 : 0;
    } else if (Told* told = told_of(node.handle)) {
      told->known = true;
      if (copy && told->kind == NodeKind::copy) change_copy(node);
    } else {
      node.kind = GraphNode::Kind::removed;
      if (node.inner != 0) g_graphs.destroy(node.inner);
      node.inner = 0;
      continue;
    }
    known.nccl = known.nccl || (call && !copy);
  }
  return known;
}

// The copy is one that we know of without its handle, by its direction and bytes.
bool give_name(GraphId id, const void* handle, const Call& copy) {
  GraphModel& model = g_graphs.model;
  const Bucket bucket = std::bit_cast<LedgerKey>(copy.key).bucket;
  for (std::uint32_t n = model.graph(id).first; n != 0; n = model.node(n).next) {
    GraphNode& node = model.node(n);
    if (node.handle != nullptr || node.count != copy.count || !is_copy_call(node)) continue;
    if (std::bit_cast<LedgerKey>(node.key).bucket != bucket) continue;
    node.handle = handle;
    return true;
  }
  return false;
}

void take_copies(GraphId id, Known known) {
  std::size_t unknown = 0;
  for (Told& told : g_told) {
    if (told.known || told.kind != NodeKind::copy) continue;
    CopyArgs copy{};
    if (!graph_driver::copy_in(told.handle, copy)) {
      g_graphs.model.graph(id).unseen |= kUnseenPart;
      told.known = true;
      continue;
    }
    const Call call = call_by(Fn::cuGraphAddMemcpyNode, copy);
    const bool within = known.nccl && bucket_of(copy) == Bucket::D2D;  // NCCL's own
    const bool named = known.nameless_copies != 0 && give_name(id, told.handle, call);
    known.nameless_copies -= named ? 1 : 0;
    told.known = within || named;
    unknown += told.known ? 0 : 1;
  }
  // Which of them are those that we know of nobody tells.
  if (known.nameless_copies != 0) {
    if (unknown > known.nameless_copies) g_graphs.model.graph(id).unseen |= kUnseenPart;
    return;
  }
  for (const Told& told : g_told) {
    CopyArgs copy{};
    if (told.known || told.kind != NodeKind::copy) continue;
    if (graph_driver::copy_in(told.handle, copy)) {
      add_call(id, told.handle, call_by(Fn::cuGraphAddMemcpyNode, copy));
    }
  }
}

void take_children(GraphId id, std::size_t nameless) {
  for (const Told& told : g_told) {
    if (told.known || told.kind != NodeKind::child) continue;
    if (nameless != 0) {
      --nameless;
      continue;
    }
    const void* handle = graph_driver::child_of(told.handle);
    const GraphId child = handle == nullptr ? 0 : g_graphs.find_or_create(handle);
    add_graph(id, GraphNode::Kind::child, told.handle, child);
  }
}

}  // namespace

void look_at(GraphId id, const void* handle) {
  if (!ask(handle)) return;
  GraphModel& model = g_graphs.model;
  const bool sure = (model.graph(id).unseen & kUnseenPart) == 0;
  model.graph(id).unseen &= ~kUnseenPart;
  const Known known = match(id);
  take_copies(id, known);
  take_children(id, known.nameless_children);
  for (const Told& told : g_told) {
    if (told.known) continue;
    if (told.kind == NodeKind::conditional) model.graph(id).unseen |= kUnseenConditional;
    if (told.kind == NodeKind::unknown) model.graph(id).unseen |= kUnseenPart;
    if (sure || told.kind != NodeKind::kernel || !graph_driver::may_be_nccl(told.handle)) continue;
    model.graph(id).unseen |= kUnseenPart;
    break;
  }
  for (std::uint32_t n = model.graph(id).first; n != 0; n = model.node(n).next) {
    const GraphId inner = model.node(n).inner;
    if (inner != 0 && model.graph(inner).handle != nullptr)
      look_at(inner, model.graph(inner).handle);
  }
}

}  // namespace tprof::graphs
