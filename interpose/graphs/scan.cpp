#include "interpose/graphs/scan.h"

#include <algorithm>
#include <bit>

#include "interpose/api/functions.h"
#include "interpose/driver/copy.h"
#include "interpose/driver/graphs.h"
#include "interpose/graphs/captures.h"

namespace tprof::graphs {
namespace {

using graph_driver::NodeKind;

struct Node {
  const void* handle;
  NodeKind kind;
  const CapturedCall* made_by;  // the last call that made a node of this handle, or null
};

// Scans one graph. A child graph gets a scan of its own.
class Scan {
 public:
  Scan(int device, Pages<Call>& calls) : device_(device), calls_(calls) {}

  std::uint32_t run(cudaGraph_t graph) {
    seen_from_start_ = captured_calls(graph, captured_);
    if (!ask_for_nodes(graph)) {
      for (const CapturedCall& c : captured_) calls_.push_back(c.call);
      if (!seen_from_start_) unseen_ |= kUnseenPart;
      return unseen_;
    }
    for (const CapturedCall& c : captured_) {
      Node* node = c.node == nullptr ? nullptr : find(c.node);
      if (node == nullptr) continue;
      const bool same_call = node->made_by != nullptr && c.placed == Placed::shared_node &&
                             node->made_by->placed == Placed::shared_node;
      if (!same_call) node->made_by = &c;
    }
    for (const CapturedCall& c : captured_) explain(c);
    for (const Node& node : nodes_) {
      if (node.made_by == nullptr) count_unexplained(node);
    }
    return unseen_;
  }

 private:
  bool ask_for_nodes(cudaGraph_t graph) {
    Pages<const void*> handles;
    const std::ptrdiff_t count = graph_driver::nodes_of(graph, nullptr, 0);
    for (std::ptrdiff_t i = 0; i < count; ++i) handles.push_back(nullptr);
    if (count < 0 || handles.failed()) return false;
    if (count != 0 && graph_driver::nodes_of(graph, handles.data(), handles.size()) != count) {
      return false;
    }
    for (const void* handle : handles) {
      nodes_.push_back({handle, graph_driver::kind_of(handle), nullptr});
    }
    std::ranges::sort(nodes_, {}, &Node::handle);
    return !nodes_.failed();
  }

  Node* find(const void* handle) {
    Node* at = std::ranges::lower_bound(nodes_, handle, {}, &Node::handle);
    return at != nodes_.end() && at->handle == handle ? at : nullptr;
  }

  // Counts the call, unless its node was removed from the graph.
  void explain(const CapturedCall& c) {
    Call call = c.call;
    if (c.node != nullptr) {
      const Node* node = find(c.node);
      if (node == nullptr) {
        // The kernel of a group may have been one of several.
        if (!is_copy(c) && c.placed == Placed::shared_node) unseen_ |= kUnseenEdit;
        return;
      }
      // The node was removed, and a later call's node got its handle.
      if (node->made_by > &c) return;
      CopyArgs now{};
      if (is_copy(c) && c.placed == Placed::one_node && call.count != 0 &&
          graph_driver::copy_in(c.node, now) && now.bytes != call.count) {
        call = found(now);
      }
    } else if (is_copy(c) && call.count != 0) {
      has_nameless_copies_ = true;
    }
    has_nccl_ = has_nccl_ || !is_copy(c);
    calls_.push_back(call);
  }

  void count_unexplained(const Node& node) {
    switch (node.kind) {
      case NodeKind::copy:
        return count_copy(node.handle);
      case NodeKind::child: {
        cudaGraph_t child = graph_driver::child_of(node.handle);
        unseen_ |=
            child == nullptr ? std::uint32_t{kUnseenPart} : contents_of(child, device_, calls_);
        return;
      }
      case NodeKind::conditional:
        unseen_ |= kUnseenConditional;
        return;
      case NodeKind::unknown:
        unseen_ |= kUnseenPart;
        return;
      case NodeKind::kernel:
        // A call can be several kernels. If calls are known, all kernels are theirs.
        if ((unseen_ & kUnseenPart) != 0 || seen_from_start_ || has_nccl_) return;
        if (graph_driver::may_be_nccl(node.handle)) unseen_ |= kUnseenPart;
        return;
      case NodeKind::other:
        return;
    }
  }

  void count_copy(const void* handle) {
    CopyArgs copy{};
    // If a captured copy has no known node, nobody tells which of the nodes is its own.
    if (has_nameless_copies_ || !graph_driver::copy_in(handle, copy)) {
      unseen_ |= kUnseenPart;
    } else if (!has_nccl_ || bucket_of(copy) != Bucket::D2D) {  // D2D copies are NCCL's own
      calls_.push_back(found(copy));
    }
  }

  // Makes a call from a copy that only the driver told of.
  Call found(const CopyArgs& copy) const {
    const auto device = static_cast<std::uint32_t>(device_) + 1;
    return {key_words(number(Fn::cuGraphAddMemcpyNode), bucket_of(copy), kDtypeByte, Mode::captured,
                      bytes_class(copy.bytes), device, 0),
            copy.bytes};
  }

  int device_;
  Pages<Call>& calls_;
  Pages<CapturedCall> captured_;
  bool seen_from_start_ = false;
  bool has_nameless_copies_ = false;
  bool has_nccl_ = false;
  Pages<Node> nodes_;  // sorted by handle
  std::uint32_t unseen_ = 0;
};

}  // namespace

std::uint32_t contents_of(cudaGraph_t graph, int device, Pages<Call>& calls) {
  return Scan(device, calls).run(graph);
}

}  // namespace tprof::graphs
