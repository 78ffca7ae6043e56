// What is in CUDA graphs, and what their launches execute.
#include <functional>
#include <map>
#include <random>

#include "catch2.h"
#include "interpose/graphs/contents.h"
#include "interpose_world.h"

using namespace tprof;
using namespace tprof::test;

namespace {

const void* handle(std::uint64_t n) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): never dereferenced
  return reinterpret_cast<const void*>(0x7f0000000000 + 16 * n);
}

LedgerKey::Words key(Fn fn, std::uint64_t bytes) {
  return key_words(static_cast<std::uint8_t>(fn), Bucket::H2D, kDtypeByte, Mode::captured,
                   bytes_class(bytes), 1, 0);
}

GraphNode call(std::uint64_t number, std::uint64_t bytes) {
  GraphNode node{};
  node.handle = handle(number);
  node.key = key(Fn::cudaMemcpyAsync, bytes);
  node.count = bytes;
  node.kind = GraphNode::Kind::call;
  node.enabled = true;
  return node;
}

GraphNode inner(std::uint64_t number, GraphId graph, GraphNode::Kind kind) {
  GraphNode node{};
  node.handle = handle(number);
  node.kind = kind;
  node.inner = graph;
  return node;
}

struct Moved {
  std::uint64_t calls = 0, bytes = 0;
  bool operator==(const Moved&) const = default;
};

Moved content(GraphModel& model, GraphId id, std::uint32_t* unseen = nullptr) {
  Moved sums;
  const std::uint32_t all = model.each_call(id, [&](const GraphNode& n) {
    ++sums.calls;
    sums.bytes += n.count;
  });
  if (unseen != nullptr) *unseen = all;
  return sums;
}

Moved replayed() {
  Pages<Total> totals;
  collect_totals(World::view(), totals);
  Moved sums;
  for (const Total& t : totals) {
    if (t.key.mode != Mode::replayed) continue;
    sums.calls += t.values.calls;
    sums.bytes += t.values.count;
  }
  return sums;
}

void launch(Thread& t, std::uint32_t entry, std::uint64_t times) {
  Transaction transaction(t);
  transaction.values(key_words(kMetaLaunch, Bucket{}, 0, Mode::direct, 0, 0, entry)).calls += times;
}

struct Forget {
  ~Forget() { graph_contents::forget_all(); }
};

}  // namespace

TEST_CASE("graphs hold what plain maps hold, whatever is added, copied, nested and destroyed") {
  GraphModel model;
  // Of each graph: its own copies and, by graph, the children that it has copies of.
  struct Expected {
    Moved sums;
    const void* name;
  };
  std::map<GraphId, Expected> expected;
  std::map<const void*, GraphId> named;
  std::mt19937 random(5);
  std::uint64_t nodes = 0;
  const auto any = [&] { return std::next(expected.begin(), random() % expected.size())->first; };
  for (int step = 0; step < 20000; ++step) {
    const auto what = random() % 8;
    if (expected.empty() || what == 0) {
      const void* name = handle(1000000 + static_cast<std::uint64_t>(step));
      const GraphId id = model.create(name);
      REQUIRE(!expected.contains(id));
      expected[id] = {{}, name};
      named[name] = id;
    } else if (what <= 3) {
      const GraphId id = any();
      const std::uint64_t bytes = random() % 5000;
      REQUIRE(model.add(id, call(++nodes, bytes)));
      expected[id].sums.calls += 1;
      expected[id].sums.bytes += bytes;
    } else if (what == 4 && expected.size() < 40) {
      const GraphId from = any();
      const GraphId id = model.copy(from);
      expected[id] = {expected[from].sums, nullptr};
    } else if (what == 5) {
      const GraphId from = any();
      const GraphId to = any();
      if (expected[from].sums.calls + expected[to].sums.calls > 5000) continue;
      REQUIRE(model.add(to, inner(++nodes, model.copy(from), GraphNode::Kind::child)));
      const Moved more = expected[from].sums;
      expected[to].sums.calls += more.calls;
      expected[to].sums.bytes += more.bytes;
    } else if (what == 6) {
      const GraphId id = any();
      if (expected[id].name != nullptr) named.erase(expected[id].name);
      expected.erase(id);
      model.destroy(id, [&](const void* name, GraphId) { CHECK(!named.contains(name)); });
    } else {
      const GraphId id = any();
      REQUIRE(content(model, id) == expected[id].sums);
    }
  }
}

TEST_CASE("a node is found in its graph and in those within it, and a removed one in none") {
  GraphModel model;
  const GraphId outer = model.create(handle(1));
  const GraphId child = model.create(handle(2));
  REQUIRE(model.add(child, call(10, 100)));
  REQUIRE(model.add(outer, call(11, 200)));
  REQUIRE(model.add(outer, inner(12, child, GraphNode::Kind::child)));
  const GraphId executable = model.copy(outer);
  for (const std::uint64_t n : {10, 11, 12}) {
    CHECK(model.find_node(outer, handle(n)) != 0);
    CHECK(model.find_node(executable, handle(n)) != 0);
    CHECK(model.find_node(executable, handle(n)) != model.find_node(outer, handle(n)));
    CHECK(model.graph(model.node(model.find_node(handle(n))).graph).handle != nullptr);
  }
  model.node(model.find_node(handle(10))).kind = GraphNode::Kind::removed;
  CHECK(model.find_node(handle(10)) == 0);
  CHECK(content(model, outer) == Moved{1, 200});
  CHECK(content(model, executable) == Moved{2, 300});
  model.node(model.find_node(executable, handle(11))).enabled = false;
  CHECK(content(model, executable) == Moved{1, 100});
}

TEST_CASE("calls in a conditional node are not counted and are said, an empty one is not") {
  GraphModel model;
  const GraphId graph = model.create(handle(1));
  const GraphId body = model.create(handle(2));
  REQUIRE(model.add(graph, call(10, 100)));
  REQUIRE(model.add(graph, inner(11, body, GraphNode::Kind::body)));
  std::uint32_t unseen = 0;
  CHECK(content(model, graph, &unseen) == Moved{1, 100});
  CHECK(unseen == 0);
  REQUIRE(model.add(body, call(12, 700)));
  CHECK(content(model, graph, &unseen) == Moved{1, 100});
  CHECK(unseen == kUnseenConditional);
}

TEST_CASE("replays are launches times what was executed, with as many executables as one likes") {
  World world;
  const Forget forget;
  GraphModel model;
  Thread& t = world.thread(1, 64);
  Moved expected;
  std::map<std::uint64_t, std::uint32_t> contents;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const std::uint64_t bytes = 100 + i % 3;
    const GraphId id = model.create(nullptr);
    REQUIRE(model.add(id, call(1, bytes)));
    REQUIRE(model.add(id, call(2, 2000)));
    std::uint32_t unseen = 1;
    const std::uint32_t entry = graph_contents::entry_of(t, model, id, unseen);
    REQUIRE(entry != 0);
    CHECK(unseen == 0);
    CHECK(graph_contents::entry_of(t, model, id, unseen) == entry);
    launch(t, entry, 2);
    expected.calls += 4;
    expected.bytes += 2 * (bytes + 2000);
    model.destroy(id, [](const void*, GraphId) {});
  }
  CHECK(replayed() == expected);
}

TEST_CASE("more different graphs than there is room for are not counted, and none wrongly") {
  World world;
  const Forget forget;
  GraphModel model;
  Thread& t = world.thread(1, 64);
  const GraphId id = model.create(nullptr);
  REQUIRE(model.add(id, call(1, 0)));
  Moved expected;
  std::uint32_t entry = 1;
  std::uint64_t bytes = 0;
  while (entry != 0) {
    REQUIRE(bytes < 100000);
    model.node(model.find_node(id, handle(1))).count = ++bytes;
    std::uint32_t unseen = 0;
    entry = graph_contents::entry_of(t, model, id, unseen);
    if (entry == 0) break;
    launch(t, entry, 1);
    expected.calls += 1;
    expected.bytes += bytes;
  }
  CHECK(expected.calls > 8000);
  CHECK(replayed() == expected);
}
