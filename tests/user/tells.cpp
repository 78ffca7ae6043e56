// Speaks through tprof.h, and prints what it was told.
//
//   user_tells once          each function once
//   user_tells many N        N scopes of durations by a formula, and what tprof_totals has of them
//   user_tells script FILE...  does what the lines of a file say, and prints their results; each
//   file has a thread
//
// A line has words separated by tabs. NULL is no name; K is any number by which a range is ended.
//
//   push NAME [ELEMENTS BYTES CATEGORIES]   start K NAME [ELEMENTS BYTES CATEGORIES]
//   pop NAME [ELEMENTS BYTES ERROR]         end K [ELEMENTS BYTES ERROR]
//   instant NAME    phase NAME    step N    flush    counter NAME KEY=VALUE...
//   fork N    a child does the next N lines, and the parent those behind them
//   kill
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "interpose/user/tprof.h"

extern "C" int tell_all_once(void);

namespace {

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
    if (tprof_pop_timed("many", &with) != static_cast<std::int64_t>(with.time_ns - begin_ns))
      std::exit(1);
  }
  std::vector<char> json(1 << 16);
  if (tprof_totals(json.data(), json.size()) > json.size()) std::exit(1);
  std::printf("%s\n", json.data());
}

using Words = std::vector<std::string>;

const char* text(const Words& words, std::size_t i) {
  return i >= words.size() || words[i] == "NULL" ? nullptr : words[i].c_str();
}
std::uint64_t number(const Words& words, std::size_t i) {
  return i < words.size() ? std::strtoull(words[i].c_str(), nullptr, 10) : 0;
}
tprof_with with(const Words& words, std::size_t i, bool begins) {
  tprof_with w = {};
  w.elements = number(words, i);
  w.bytes = number(words, i + 1);
  (begins ? w.categories : w.error) = text(words, i + 2);
  return w;
}

int count(const Words& words) {
  std::vector<std::string> names;
  std::vector<const char*> keys;
  std::vector<double> values;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::size_t at = words[i].find('=');
    names.push_back(words[i].substr(0, at));
    values.push_back(std::strtod(words[i].c_str() + at + 1, nullptr));
  }
  for (const std::string& name : names) keys.push_back(name.c_str());
  return tprof_counter(text(words, 1), keys.data(), values.data(), keys.size());
}

class Speaker {
 public:
  int says(const Words& words) {
    const std::string& what = words[0];
    if (what == "push") {
      const tprof_with w = with(words, 2, true);
      return tprof_push_with(text(words, 1), &w);
    }
    if (what == "pop") {
      const tprof_with w = with(words, 2, false);
      return tprof_pop_with(text(words, 1), &w);
    }
    if (what == "start") {
      const tprof_with w = with(words, 3, true);
      started_[number(words, 1)] = tprof_start_with(text(words, 2), &w);
      return 0;
    }
    if (what == "end") {
      const tprof_with w = with(words, 2, false);
      const auto found = started_.find(number(words, 1));
      return tprof_end_with(found == started_.end() ? number(words, 1) : found->second, &w);
    }
    if (what == "instant") return tprof_instant(text(words, 1));
    if (what == "phase") return tprof_phase(text(words, 1));
    if (what == "step") return tprof_step(std::atoi(words[1].c_str()));
    if (what == "counter") return count(words);
    if (what == "flush") return tprof_flush(60'000);
    return std::raise(SIGKILL);
  }

  // Returns the results of all lines.
  std::string reads(const char* file) {
    std::vector<Words> lines;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      std::istringstream all(line);
      Words& words = lines.emplace_back();
      for (std::string word; std::getline(all, word, '\t');) words.push_back(word);
      if (words.size() == 1) words.emplace_back();
    }
    std::string results;
    std::size_t end = lines.size();
    bool child = false;
    for (std::size_t i = 0; i < end; ++i) {
      if (lines[i][0] != "fork") {
        results += std::to_string(says(lines[i])) + ' ';
        continue;
      }
      const std::size_t last = i + number(lines[i], 1);
      if (fork() == 0) {
        child = true;
        end = last + 1;
      } else {
        wait(nullptr);
        i = last;
      }
    }
    if (child) {
      std::printf("%s\n", results.c_str());
      std::exit(0);
    }
    return results;
  }

 private:
  std::map<std::uint64_t, std::uint64_t> started_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "once") return tell_all_once();
  if (what == "many") many(std::strtoull(argv[2], nullptr, 10));
  if (what != "script") return 0;
  std::vector<std::string> results(static_cast<std::size_t>(argc));
  std::vector<std::thread> threads;
  for (int i = 3; i < argc; ++i) {
    threads.emplace_back(
        [&, i] { results[static_cast<std::size_t>(i)] = Speaker().reads(argv[i]); });
  }
  results[2] = Speaker().reads(argv[2]);
  for (std::thread& thread : threads) thread.join();
  for (int i = 2; i < argc; ++i) std::printf("%s\n", results[static_cast<std::size_t>(i)].c_str());
}
