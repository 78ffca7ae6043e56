// What graphs.h is made of: the graphs by the handles that the program knows them by, under one
// lock.
#pragma once

#include "interpose/base/handle_map.h"
#include "interpose/graphs/graphs.h"
#include "interpose/graphs/model.h"

namespace tprof::graphs {

inline constexpr std::uint32_t kMaxHandles = 16384;

class Registry {
 public:
  GraphModel model;

  GraphId find(const void* handle) const { return ids_.find(handle); }
  // `id` is what `handle` means from now on; what it meant before was destroyed without our seeing.
  void name(GraphId id, const void* handle);
  GraphId create(const void* handle);
  // One that is not known was made without our seeing: a part of it may be unseen.
  GraphId find_or_create(const void* handle);
  void destroy(GraphId id);
  void clear();

 private:
  HandleMap<kMaxHandles> ids_;  // cudaGraph_t -> GraphId
};

// All are under g_lock, but that lookups of handles take none.
extern Lock g_lock;
extern Registry g_graphs;
extern HandleMap<kMaxHandles> g_executable;  // cudaGraphExec_t -> GraphId

// Gives the nodes of `id`, a copy of another graph's, the handles that they have in `handle`.
void name_copies(GraphId id, cudaGraph_t handle);
// The handle of a node in it is not known.
void lost_name(GraphId id, const GraphNode& node);
// The nodes of `id`, a copy of another graph's, have handles of their own, which are not known.
void forget_handles(GraphId id);
void add_call(GraphId id, const void* handle, const Call& call);
void add_graph(GraphId id, GraphNode::Kind kind, const void* handle, GraphId inner);
// An executable of what is in `graph`.
GraphId executable_of(GraphId graph);

}  // namespace tprof::graphs
