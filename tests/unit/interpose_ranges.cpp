// marks/ranges.h: what becomes of NVTX ranges in the mapped file after a kill at any moment.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "catch2.h"
#include "interpose/format/commit.h"
#include "interpose/marks/range_names.h"
#include "interpose/marks/ranges.h"
#include "interpose_single_step.h"
#include "interpose_world.h"

using namespace tprof;
using namespace tprof::test;

namespace {

struct Seen {
  std::map<std::string, int> ended;
  std::map<std::string, nlohmann::json> arguments;  // of those
  std::vector<std::string> open;
  std::uint64_t dropped = 0;

  std::uint64_t all() const {
    std::uint64_t n = dropped + open.size();
    for (const auto& [name, times] : ended) n += static_cast<std::uint64_t>(times);
    return n;
  }
};

// Reads a copy as recovery would, so the file is not written. `lines` are those already in it.
Seen recover(const View& live, std::string lines = "") {
  auto* base = reinterpret_cast<std::byte*>(&live.head());
  std::vector<std::byte> memory(base, base + live.head().used.load());
  const View view(memory.data(), memory.size());
  Drain drain(view);
  drain.next = committed_block(view.head())->progress;
  while (!drain.run()) {
  }
  lines += drain.out().view();
  Seen seen;
  for (const std::string& line : split_lines(lines)) {
    const auto json = nlohmann::json::parse(line.substr(0, line.rfind(',')));
    if (!json.contains("cat") || json["cat"] != "NVTX" || json["ph"] == "e") continue;
    ++seen.ended[json["name"].get<std::string>()];
    seen.arguments[json["name"].get<std::string>()] = json["args"];
  }
  each_open_range(view,
                  [&](const OpenRange& r, bool) { seen.open.emplace_back(r.name, r.length); });
  Sums sums;
  collect(view, sums, false);
  for (const Total& t : sums.all) {
    seen.dropped += t.key.function == kMetaRangeDropped ? t.values.calls : 0;
  }
  for (const std::uint64_t n : drain.next.range_dropped) seen.dropped += n;
  return seen;
}

void drain(const View& view, std::string& file) {
  Drain drain(view);
  drain.next = committed_block(view.head())->progress;
  while (!drain.run()) {
  }
  file += drain.out().view();
  commit_progress(view.head(), drain.next);
  for (std::uint32_t i = 0; i < view.threads(); ++i) {
    view.thread(i)->tail = drain.next.tail[i];
  }
}

// Derives attributes of every kind, or none, from a number, so that each name has its own.
marks::Attributes attributes_of(std::uint64_t n) {
  marks::Attributes a;
  a.given = static_cast<std::uint8_t>(n % 32);
  a.amounts = {n, n + 1};
  a.values = {n, static_cast<std::uint32_t>(n) + 1, static_cast<std::uint32_t>(n)};
  return a;
}

// Returns the arguments that its line has then.
nlohmann::json arguments_of(std::uint64_t n) {
  nlohmann::json args = nlohmann::json::object();
  char color[16];
  std::snprintf(color, sizeof color, "#%06x", static_cast<unsigned>(n));
  if ((n & 1) != 0) args["category"] = n + 1;
  if ((n & 2) != 0) args["color"] = color;
  double real = 0;
  std::memcpy(&real, &n, sizeof real);
  if ((n & 12) == 12) args["payload"] = real;
  if ((n & 12) == 4 || (n & 12) == 8) args["payload"] = n;
  if ((n & 16) != 0) args["elements"] = n, args["bytes"] = n + 1;
  return args;
}

struct Counts {
  std::atomic<std::uint64_t> entered, begun;
};

// Returns a name of this length, which says how many records the range takes.
std::string name_of(std::uint64_t n, std::size_t length) {
  std::string name = std::to_string(n) + " ";
  name.resize(std::max(name.size(), length), 'n');
  return name;
}

void push_and_pop(Counts& counts) {
  const auto begin = [&](auto&& how) {
    ++counts.entered;
    how();
    ++counts.begun;
  };
  for (std::uint64_t n = 0; n < 5; ++n) {
    const std::string outer = name_of(2 * n, 8);
    const std::string inner = name_of(2 * n + 1, 20 + 24 * n);
    begin([&] { marks::push(0, outer); });
    begin([&] { marks::push(1, inner, attributes_of(15)); });
    marks::pop(n % 2 == 0 ? 1 : 0);  // or crosswise
    marks::pop(n % 2 == 0 ? 0 : 1);
  }
  std::uint64_t started = 0;
  begin([&] { started = marks::start(0, "started"); });
  marks::end(started);
  begin([&] { marks::mark(0, "mark"); });
  for (int i = 0; i < 33; ++i) begin([&] { marks::push(0, "deep"); });
  for (int i = 0; i < 33; ++i) marks::pop(0);
}

}  // namespace

TEST_CASE("killed anywhere between drains, every range that ended has exactly one line") {
  World world;
  Thread* threads[] = {&world.thread(11, 64), &world.thread(12, 128)};
  std::string file;
  std::map<std::string, int> made;
  std::mt19937 random(17);
  std::vector<std::vector<std::string>> open(2);
  std::uint64_t made_names = 0;
  for (int step = 0; step < 800; ++step) {
    const std::size_t who = random() % 2;
    const AsThread as(*threads[who]);
    if (random() % 2 == 0 && open[who].size() < 20) {
      open[who].push_back(name_of(made_names, random() % (kMaxRangeName + 1)));
      marks::push(0, open[who].back(), attributes_of(made_names++));
    } else if (!open[who].empty()) {
      ++made[open[who].back()];
      open[who].pop_back();
      marks::pop(0);
    }
    if (step % 5 == 0) drain(world.view(), file);
    if (step % 7 != 0) continue;
    const Seen seen = recover(world.view(), file);
    REQUIRE(seen.ended == made);
    std::vector<std::string> expected = open[0];
    expected.insert(expected.end(), open[1].begin(), open[1].end());
    REQUIRE(seen.open == expected);
    REQUIRE(seen.dropped == 0);
    for (const auto& [name, arguments] : seen.arguments) {
      CHECK(arguments == arguments_of(std::stoul(name)));
    }
  }
  CHECK(made.size() > 300);
}

TEST_CASE("killed after any instruction, a range is open, ended or counted, and only one of them") {
  const int file = memfd_create("ring", 0);
  World world(file);
  Thread& t = world.thread(1, 32);
  std::uint64_t wrong = 0;
  std::uint64_t begun = 0;
  std::uint64_t last = 0;
  const auto look = [&](const View& view, const Counts& counts) {
    // Parsing each moment's lines would take minutes, so this reads the records and rows.
    std::uint64_t there = 0;
    const ThreadArea& area = *view.thread(0);
    const Record* ring = view.ring(area);
    for (std::uint64_t n = 0; n < area.head; ++n) {
      const Record& r = ring[n % area.capacity];
      there += r.function == kMetaRange && r.txn != 0 && r.txn <= area.committed;
    }
    each_open_range(view, [&](const OpenRange& r, bool) {
      ++there;
      wrong += std::string_view(r.name, r.length).find_first_not_of("0123456789 nstaredp") !=
               std::string_view::npos;
      const RangeAttributes& a = r.attributes;
      wrong += r.domain == 1 && (r.given != 15 || a.payload != 15 || a.category != 16);
      wrong += r.domain == 0 && r.given != 0;
    });
    view.each_row([&](const LedgerRow& row, const ThreadArea& owner) {
      if (key_of(row).function == kMetaRangeDropped) there += read_row(row, owner.committed).calls;
    });
    begun = counts.begun;
    // The 33rd level has no place, so it is counted when it ends.
    wrong += there > counts.entered || there + 1 < begun || there < last;
    last = there;
  };
  const auto program = [&](Counts& counts) {
    t_thread = t;
    t_thread.session = session::number();
    push_and_pop(counts);
  };
  const std::uint64_t steps = at_every_instruction<Counts>(file, program, look);
  close(file);
  if (steps == 0) return;
  CHECK(wrong == 0);
  CHECK(steps > 3000);
  CHECK(begun == 45);
  CHECK(last == 45);
}
