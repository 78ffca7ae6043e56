// CUDA graphs as the program built them: which counted calls are in which graph. Kept in the
// process's own memory; what a launch executes goes to the mapped file (graph_contents.h).
#pragma once

#include <bit>
#include <cstdint>

#include "interpose/base/pages.h"
#include "interpose/format/ledger.h"

namespace tprof {

using GraphId = std::uint32_t;  // 0: none

// A node that bears on what is counted. Kernels and the like have none.
struct GraphNode {
  enum class Kind : std::uint8_t {
    removed,
    call,   // a copy or an NCCL call
    child,  // a child graph
    body,   // a body of a conditional node, which runs as often as the device decides
  };
  // cudaGraphNode_t, of an NCCL call its kernel's; null where it is not known, or where it is not
  // one node for one call. A batch of copies has an entry for each direction, with the same handle.
  const void* handle;
  LedgerKey::Words key;  // of a call
  std::uint64_t count;   // of a call: the API's count; copies: bytes
  GraphId graph;         // that it is in
  GraphId inner;         // of a child or body: the graph in it
  std::uint32_t next;    // in its graph
  Kind kind;
  bool enabled;
};

// Several of a graph's `unseen`.
enum GraphUnseen : std::uint32_t {
  kUnseenPart = 1,         // it was made, or a part of it, by calls that we did not see
  kUnseenEdit = 2,         // a copy in it was changed, and which one is not known
  kUnseenConditional = 4,  // calls in a conditional node
};

struct GraphInfo {
  const void* handle;         // cudaGraph_t; null: in an executable
  const void* origin;         // stream whose capture makes it, null: none does
  std::uint64_t capture;      // CUDA's number of the capture that adds to it, 0: none does
  std::uint64_t life;         // different for each graph there ever was
  std::uint32_t first, last;  // nodes
  std::uint32_t unseen;       // GraphUnseen
  bool unnamed;               // copies are in it whose handle is not known
  bool unnamed_nccl;          // the same of NCCL calls
  bool in_use;
};

inline bool is_copy(const GraphNode& call) {
  return is_copy(std::bit_cast<LedgerKey>(call.key).bucket);
}

// Not for several threads at once: its owner holds a lock.
class GraphModel {
 public:
  // 0 where memory runs out.
  GraphId create(const void* handle);
  // With the graphs in it, for each of which forget(handle) is called.
  template <typename F>
  void destroy(GraphId id, F&& forget) {
    if (id == 0) return;
    for (std::uint32_t n = graph(id).first; n != 0;) {
      GraphNode& gone = node(n);
      n = gone.next;
      if (gone.kind == GraphNode::Kind::child || gone.kind == GraphNode::Kind::body) {
        destroy(gone.inner, forget);
      }
    }
    if (graph(id).handle != nullptr) forget(graph(id).handle, id);
    release(id);
  }
  GraphInfo& graph(GraphId id) { return graphs_.data()[id - 1]; }
  GraphNode& node(std::uint32_t n) { return nodes_.data()[n - 1]; }

  // False where memory runs out: then the graph's `unseen` says so.
  bool add(GraphId id, const GraphNode& node);
  // A graph of its own with the same nodes and, by itself, without a handle. 0: no memory.
  GraphId copy(GraphId from);

  std::uint32_t find_node(const void* handle);              // in all graphs that have a handle
  std::uint32_t find_node(GraphId id, const void* handle);  // in the graph, and the graphs in it

  // Calls f(call) for each that a launch executes. Returns what is unseen of it.
  template <typename F>
  std::uint32_t each_call(GraphId id, F&& f) {
    std::uint32_t unseen = graph(id).unseen;
    for (std::uint32_t n = graph(id).first; n != 0; n = node(n).next) {
      const GraphNode& at = node(n);
      if (at.kind == GraphNode::Kind::call && at.enabled) f(at);
      if (at.kind == GraphNode::Kind::child) unseen |= each_call(at.inner, f);
      if (at.kind == GraphNode::Kind::body && has_calls(at.inner)) unseen |= kUnseenConditional;
    }
    return unseen;
  }
  // Calls f(node) for each node of the graph and of the graphs in it.
  template <typename F>
  void each_node(GraphId id, F&& f) {
    for (std::uint32_t n = graph(id).first; n != 0; n = node(n).next) {
      f(node(n));
      if (node(n).inner != 0) each_node(node(n).inner, f);
    }
  }
  template <typename F>
  void each_graph(F&& f) {
    for (GraphId id = 1; id <= graphs_.size(); ++id) {
      if (graph(id).in_use) f(id);
    }
  }

  void forget_all();

 private:
  bool has_calls(GraphId id);
  void release(GraphId id);

  Pages<GraphInfo> graphs_;
  Pages<GraphNode> nodes_;
  GraphId free_graph_ = 0;       // a list by `first`
  std::uint32_t free_node_ = 0;  // a list by `next`
  std::uint64_t lives_ = 0;
};

}  // namespace tprof
