// Speaks through tprof.h, and prints what it told.
//
//   user_tells once        each function once
//   user_tells wrong       calls that are refused, and a line of their results
//   user_tells random SEED THREADS TURNS
//   user_tells deep N      N scopes in one another, all ended
//   user_tells kill N      N scopes, flushed; one open; then SIGKILL
//   user_tells many N      N scopes of durations by a formula, and what tprof_totals has of them
//   user_tells alike       52 scopes of names that differ in their last letter, with and without a
//                          category
//   user_tells fork        a child ends its parent's scopes, and has one of its own
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "interpose/user/tprof.h"

extern "C" int tell_all_once(void);

namespace {

// The program's own counts.
struct Told {
  std::uint64_t count, elements, bytes, errors;
};
std::map<std::string, Told> g_told;
std::map<std::string, std::vector<double>> g_counted;
std::mutex g_lock;

void told(const std::string& name, std::uint64_t elements, std::uint64_t bytes, bool error) {
  const std::lock_guard guard(g_lock);
  Told& t = g_told[name];
  ++t.count;
  t.elements += elements;
  t.bytes += bytes;
  t.errors += error ? 1 : 0;
}

void print() {
  std::printf("{\"scopes\":{");
  const char* comma = "";
  for (const auto& [name, t] : g_told) {
    std::printf("%s\"%s\":[%lu,%lu,%lu,%lu]", comma, name.c_str(), t.count, t.elements, t.bytes,
                t.errors);
    comma = ",";
  }
  std::printf("},\"counters\":{");
  comma = "";
  for (const auto& [name, values] : g_counted) {
    std::printf("%s\"%s\":[", comma, name.c_str());
    for (std::size_t i = 0; i < values.size(); ++i)
      std::printf("%s%.17g", i == 0 ? "" : ",", values[i]);
    std::printf("]");
    comma = ",";
  }
  std::printf("}}\n");
}

bool all_well = true;
void expect(bool well) {
  all_well = all_well && well;
}

struct Open {
  std::string name;
  std::uint64_t id, elements, bytes;
};

class Speaker {
 public:
  explicit Speaker(std::uint64_t seed) : random_(seed) {}

  void turn() {
    switch (random_() % 8) {
      case 0:
      case 1:
        return begin(true);
      case 2:
        return begin(false);
      case 3:
      case 4:
      case 5:
        return end();
      case 6:
        expect(tprof_instant("instant") == TPROF_OK);
        return told("instant", 0, 0, false);
      default:
        return count();
    }
  }
  void finish() {
    while (!pushed_.empty() || !started_.empty()) end();
  }

 private:
  static constexpr std::size_t kMost = 16;  // fewer than there is room for: nothing may be dropped

  tprof_with with() {
    tprof_with w = {};
    if (random_() % 2 == 0) w.elements = random_() % 1000;
    if (random_() % 2 == 0) w.bytes = random_() >> 20;
    return w;
  }

  void begin(bool push) {
    std::vector<Open>& to = push ? pushed_ : started_;
    if (to.size() == (push ? kMost : 4)) return;
    tprof_with w = with();
    Open open = {(push ? "scope " : "async ") + std::to_string(random_() % 5), 0, w.elements,
                 w.bytes};
    if (random_() % 3 == 0) w.categories = open.name.back() < '3' ? "low" : "high,odd";
    if (push) {
      expect(tprof_push_with(open.name.c_str(), &w) == TPROF_OK);
    } else {
      open.id = tprof_start_with(open.name.c_str(), &w);
    }
    to.push_back(open);
  }

  void end() {
    const bool push = started_.empty() || (!pushed_.empty() && random_() % 2 == 0);
    std::vector<Open>& of = push ? pushed_ : started_;
    if (of.empty()) return;
    tprof_with w = with();
    const bool error = random_() % 4 == 0;
    if (error) w.error = "std::runtime_error";
    std::size_t i = push ? of.size() - 1 : random_() % of.size();
    // Ends the innermost one of this name.
    const bool by_name = push && random_() % 4 == 0;
    if (by_name) {
      const std::string name = of[random_() % of.size()].name;
      while (of[i].name != name) --i;
    }
    const Open open = of[i];
    of.erase(of.begin() + static_cast<std::ptrdiff_t>(i));
    expect((push ? tprof_pop_with(by_name ? open.name.c_str() : nullptr, &w)
                 : tprof_end_with(open.id, &w)) == TPROF_OK);
    if (!push && random_() % 4 == 0) expect(tprof_end(open.id) == TPROF_NOT_OPEN || open.id == 0);
    told(open.name, open.elements + w.elements, open.bytes + w.bytes, error);
  }

  void count() {
    const char* keys[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    const std::size_t n = 1 + random_() % 8;
    const std::string name = "counter " + std::to_string(n);
    std::vector<double> values;
    for (std::size_t i = 0; i < n; ++i) {
      values.push_back(random_() % 2 == 0 ? static_cast<double>(random_() % 1000)
                                          : static_cast<double>(random_()) / 7.0);
    }
    expect(tprof_counter(name.c_str(), keys, values.data(), n) == TPROF_OK);
    const std::lock_guard guard(g_lock);
    auto& all = g_counted[name];
    all.insert(all.end(), values.begin(), values.end());
  }

  std::mt19937_64 random_;
  std::vector<Open> pushed_;
  std::vector<Open> started_;
};

void random_turns(std::uint64_t seed, int threads, int turns) {
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([=] {
      Speaker speaker(seed * 1000 + static_cast<std::uint64_t>(t));
      for (int i = 0; i < turns; ++i) {
        speaker.turn();
        if (i % 200 == 199) expect(tprof_flush(60'000) == TPROF_OK);  // the ring never fills up
      }
      speaker.finish();
    });
  }
  for (auto& t : all) t.join();
}

void wrong() {
  const char* keys[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
  const char* twice[] = {"a", "a"};
  const double values[9] = {};
  const std::string longest(126, 'n');
  const tprof_with none = {};
  tprof_push("there");
  const int results[] = {
      tprof_pop("nothing"),
      tprof_push(nullptr),
      tprof_push(""),
      tprof_instant(""),
      tprof_instant(nullptr),
      tprof_phase("sleeping"),
      tprof_step(-3),
      tprof_counter("many", keys, values, 9),
      tprof_counter("none", keys, values, 0),
      tprof_counter("twice", twice, values, 2),
      tprof_counter(longest.c_str(), keys, values, 1),
      tprof_end(12345),
      tprof_pop_with("there", &none),
      tprof_pop(nullptr),
      tprof_end(0),
  };
  for (const int result : results) std::printf("%d ", result);
  std::printf("\n");
}

std::uint64_t realtime_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// The i-th scope takes 1 + i * 7919 % 1'000'003 ns, by the times that it gives.
void many(std::uint64_t n) {
  constexpr std::uint64_t kLongest = 1'000'003;
  tprof_instant("begin");
  const std::uint64_t begin_ns = realtime_ns() + 1;
  while (realtime_ns() < begin_ns + kLongest) {
  }
  for (std::uint64_t i = 0; i < n; ++i) {
    tprof_with with = {};
    with.time_ns = begin_ns;
    tprof_push_with("many", &with);
    with.time_ns = begin_ns + 1 + i * 7919 % kLongest;
    with.elements = i % 3;
    expect(tprof_pop_timed("many", &with) == static_cast<std::int64_t>(with.time_ns - begin_ns));
  }
  std::vector<char> json(1 << 16);
  expect(tprof_totals(json.data(), json.size()) <= json.size());
  std::printf("%s\n", json.data());
}

void alike() {
  tprof_with in_category = {};
  in_category.categories = "one";
  for (char last = 'a'; last <= 'z'; ++last) {
    const std::string name = std::string("name") + last;
    tprof_push(name.c_str());
    tprof_pop(nullptr);
    tprof_push_with(name.c_str(), &in_category);
    tprof_pop(nullptr);
  }
}

void forked() {
  tprof_push("parent's");
  const std::uint64_t id = tprof_start("parent's own");
  const pid_t child = fork();
  if (child == 0) {
    expect(tprof_end(id) == TPROF_OK && tprof_pop(nullptr) == TPROF_OK);  // these are not its own
    expect(tprof_push("child's") == TPROF_OK && tprof_pop(nullptr) == TPROF_OK);
    expect(tprof_pop(nullptr) == TPROF_NOT_OPEN);
    std::exit(all_well ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  expect(status == 0 && tprof_end(id) == TPROF_OK && tprof_pop(nullptr) == TPROF_OK);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const auto number = [&](int i) { return argc > i ? std::strtoull(argv[i], nullptr, 10) : 0; };
  if (what == "once") return tell_all_once();
  if (what == "wrong") wrong();
  if (what == "fork") forked();
  if (what == "many") many(number(2));
  if (what == "alike") alike();
  if (what == "deep") {
    for (std::uint64_t i = 0; i < number(2); ++i) expect(tprof_push("deep") == TPROF_OK);
    for (std::uint64_t i = 0; i < number(2); ++i) expect(tprof_pop("deep") == TPROF_OK);
    expect(tprof_pop("deep") == (tprof_enabled() != 0 ? TPROF_NOT_OPEN : TPROF_OK));
  }
  if (what == "kill") {
    for (std::uint64_t i = 0; i < number(2); ++i) {
      tprof_push("done");
      tprof_pop(nullptr);
    }
    tprof_push("open");
    tprof_step(3);
    std::raise(SIGKILL);
  }
  if (what == "random") {
    random_turns(number(2), static_cast<int>(number(3)), static_cast<int>(number(4)));
    print();
  }
  return all_well ? 0 : 1;
}
