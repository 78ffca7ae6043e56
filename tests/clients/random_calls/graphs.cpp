// Captures CUDA graphs on one stream and on two. They are launched from this thread and from
// others, and destroyed before or after what was made of them. Left out is what tprof reports but
// does not count: clones, child graphs, and nodes that are added or changed by hand.
#include <algorithm>
#include <thread>

#include "copies.h"

namespace {

constexpr std::size_t kMost = 5;  // graphs, and executables

void expect_either(cudaError_t result) {
  if (result != cudaSuccess) MUST(cudaGetLastError() == result);
}

template <class T>
T& any(Dice& d, std::vector<T>& all) {
  return all[d.below(all.size())];
}

Graphs empty(Player& p) {
  Graphs g;
  g.of.resize(p.ranks.size());
  g.number = p.graphs_made++;
  return g;
}

template <class Do>
void for_each(Player& p, Do act) {
  for (std::size_t i = 0; i < p.ranks.size(); ++i) {
    OK(CALL(cudaSetDevice)(p.ranks[i].device));
    act(i, p.ranks[i]);
  }
}

// Puts work of a second stream into the capture of the first one.
void fork_and_join(Dice& d, const Rank& r) {
  OK(cudaEventRecord(r.forked, r.streams[0]));
  OK(cudaStreamWaitEvent(r.streams[1], r.forked, 0));
  asynchronous_copy(d, r, r.streams[1]);
  if (d.chance(30)) std::thread([&] { asynchronous_copy(d, r, r.streams[1]); }).join();
  asynchronous_copy(d, r, r.streams[0]);
  OK(cudaEventRecord(r.joined, r.streams[1]));
  OK(cudaStreamWaitEvent(r.streams[0], r.joined, 0));
}

// Fills the capture that all ranks are in.
void fill(Player& p, std::vector<int>& used) {
  Dice& d = p.common;
  for (std::size_t step = 1 + d.below(4); step-- != 0;) {
    const std::size_t what = d.below(10);
    if (what < 4) used.push_back(captured_collectives(p));
    if (what >= 4) {
      for_each(p, [&](auto, const Rank& r) {
        const bool forks = p.own.chance(30);
        forks ? fork_and_join(p.own, r) : asynchronous_copy(p.own, r, r.streams[0]);
      });
    }
  }
}

constexpr cudaStreamCaptureMode kModes[] = {cudaStreamCaptureModeThreadLocal,
                                            cudaStreamCaptureModeRelaxed};

void capture(Player& p) {
  tell(p, "graph %d: captured", p.graphs_made);
  Graphs g = empty(p);
  const cudaStreamCaptureMode mode = p.common.one_of(kModes);
  const bool spoilt = p.common.chance(7) && p.o.refused != 0;
  for_each(p, [&](auto, const Rank& r) { OK(CALL(cudaStreamBeginCapture)(r.streams[0], mode)); });
  fill(p, g.used);
  for_each(p, [&](auto i, const Rank& r) {
    if (spoilt) expect_either(cudaStreamSynchronize(r.streams[0]));
    const cudaError_t result = CALL(cudaStreamEndCapture)(r.streams[0], &g.of[i]);
    MUST((result == cudaSuccess) == !spoilt);
    if (spoilt) MUST(cudaGetLastError() == result);
  });
  if (!spoilt) p.graphs.push_back(std::move(g));
}

void capture_into(Player& p, Graphs& g) {
  tell(p, "graph %d: captured into", g.number);
  for_each(p, [&](auto i, const Rank& r) {
    OK(CALL(cudaStreamBeginCaptureToGraph)(r.streams[0], g.of[i], nullptr, nullptr, 0,
                                           cudaStreamCaptureModeThreadLocal));
  });
  fill(p, g.used);
  for_each(p,
           [&](auto i, const Rank& r) { OK(CALL(cudaStreamEndCapture)(r.streams[0], &g.of[i])); });
  ++g.version;
}

void instantiate(Player& p, const Graphs& g) {
  Executables e;
  e.of.resize(p.ranks.size());
  e.used = g.used;
  e.graph = g.number;
  e.version = g.version;
  e.number = p.executables_made++;
  tell(p, "executable %d: of graph %d", e.number, g.number);
  const std::size_t way = p.common.below(3);
  for_each(p, [&](auto i, const Rank&) {
    cudaGraphInstantiateParams params{};
    if (way == 0) OK(cudaGraphInstantiate(&e.of[i], g.of[i], 0));
    if (way == 1) OK(CALL(cudaGraphInstantiateWithFlags)(&e.of[i], g.of[i], 0));
    if (way == 2) OK(CALL(cudaGraphInstantiateWithParams)(&e.of[i], g.of[i], &params));
  });
  p.executables.push_back(std::move(e));
}

void launch(Player& p, const Executables& e) {
  tell(p, "executable %d: launched", e.number);
  const std::size_t times = 1 + p.common.below(3), stream = p.common.below(2);
  const bool elsewhere = p.common.chance(20);
  const auto all = [&] {
    for_each(p,
             [&](auto i, const Rank& r) { OK(CALL(cudaGraphLaunch)(e.of[i], r.streams[stream])); });
  };
  for (std::size_t i = 0; i < times; ++i) {
    elsewhere ? std::thread(all).join() : all();
  }
}

void update(Player& p, Executables& x, const Graphs& g) {
  const bool own = x.graph == g.number && x.version == g.version;
  // With collectives in it, all ranks have to be updated, or none.
  if (!own && (!x.used.empty() || !g.used.empty())) return;
  tell(p, "executable %d: updated with graph %d", x.number, g.number);
  for_each(p, [&](auto i, const Rank&) {
    cudaGraphExecUpdateResultInfo info{};
    const cudaError_t result = CALL(cudaGraphExecUpdate)(x.of[i], g.of[i], &info);
    MUST(result == cudaSuccess || !own);
    expect_either(result);
  });
}

void destroy(Player& p, std::vector<Graphs>::iterator g) {
  tell(p, "graph %d: destroyed", g->number);
  for_each(p, [&](auto i, const Rank&) { OK(CALL(cudaGraphDestroy)(g->of[i])); });
  p.graphs.erase(g);
}
void destroy(Player& p, std::vector<Executables>::iterator x) {
  tell(p, "executable %d: destroyed", x->number);
  for_each(p, [&](auto i, const Rank&) { OK(CALL(cudaGraphExecDestroy)(x->of[i])); });
  p.executables.erase(x);
}

Graphs* graph_of(Player& p, const Executables& x) {
  for (Graphs& g : p.graphs) {
    if (g.number == x.graph) return &g;
  }
  return nullptr;
}

}  // namespace

void forget_graphs_with(Player& p, int family) {
  const auto in = [family](const auto& it) {
    return std::find(it.used.begin(), it.used.end(), family) != it.used.end();
  };
  for (auto g = p.graphs.begin(); g != p.graphs.end();) {
    if (!in(*g)) {
      ++g;
    } else {
      destroy(p, g);
      g = p.graphs.begin();
    }
  }
  for (auto x = p.executables.begin(); x != p.executables.end();) {
    if (!in(*x)) {
      ++x;
    } else {
      destroy(p, x);
      x = p.executables.begin();
    }
  }
}

void graph_turn(Player& p) {
  Dice& d = p.common;
  if (p.graphs.size() == kMost) {
    return destroy(p, p.graphs.begin() + static_cast<std::ptrdiff_t>(d.below(kMost)));
  }
  if (p.executables.size() == kMost) {
    synchronize(p);
    return destroy(p, p.executables.begin() + static_cast<std::ptrdiff_t>(d.below(kMost)));
  }
  const std::size_t what = d.below(9);
  if (p.graphs.empty() || what == 0) return capture(p);
  Graphs& g = any(d, p.graphs);
  if (what == 1) return capture_into(p, g);
  if (what == 2) return instantiate(p, g);
  if (p.executables.empty()) return instantiate(p, g);
  Executables& x = any(d, p.executables);
  switch (what) {
    case 3:
      return update(p, x, g);
    case 4: {
      const Graphs* own = graph_of(p, x);
      if (own != nullptr) update(p, x, *own);
      return;
    }
    default:
      return launch(p, x);
  }
}
