// device/intervals.h: the lines that the computation of a device becomes.
#include "interpose/device/intervals.h"

#include <string>

#include "catch2.h"

using namespace tprof;
using namespace tprof::device;

namespace {

// Keeps what intervals become: "0-10 15-20?", with "<12" where the device was idle from 12 on.
struct Lines {
  Intervals intervals;
  std::string words;
  bool full = false;  // there is no room

  auto put() {
    return [this](const Interval& i, std::uint64_t idle_from_ns) {
      if (full) return false;
      const auto us = [](std::uint64_t ns) { return std::to_string(ns / 1000); };
      words += (words.empty() ? "" : " ") + us(i.from_ns) + "-" + us(i.to_ns);
      if (i.unsure) words += "?";
      if (idle_from_ns != i.from_ns) words += "<" + us(idle_from_ns);
      return true;
    };
  }
  void add(std::uint64_t from_us, std::uint64_t to_us, bool unsure = false) {
    intervals.add({from_us * 1000, to_us * 1000, unsure}, put());
  }
  void known(std::uint64_t us) { intervals.known(us * 1000, put()); }
  void end(std::uint64_t us) { intervals.end(us * 1000, put()); }
};

}  // namespace

TEST_CASE("computation has one line until the device was idle, and no line before that is known") {
  Lines lines;
  lines.add(100, 200);
  lines.known(200);
  CHECK(lines.words.empty());
  lines.add(200, 300);
  lines.add(305, 400);  // kernels that follow each other
  lines.known(405);
  CHECK(lines.words.empty());
  lines.known(450);
  CHECK(lines.words == "100-400");
  lines.add(450, 500);
  lines.add(500, 600, true);
  lines.add(602, 603);  // too short for a line
  lines.add(603, 700);
  lines.end(900);
  CHECK(lines.words == "100-400 450-500<400 500-603? 603-700 900-900?<700");
  lines.add(1000, 1100);  // of what was between nothing is known
  lines.end(1100);
  CHECK(lines.words.ends_with("900-900?<700 1000-1100"));
}

TEST_CASE("computation that goes on is told in pieces that touch") {
  Lines lines;
  for (std::uint64_t ms = 0; ms < 500; ms += 10) {
    lines.add(ms * 1000, (ms + 10) * 1000);
    lines.known((ms + 10) * 1000);
  }
  lines.end(500'000);
  CHECK(lines.words == "0-200000 200000-400000 400000-500000");
}

TEST_CASE("where there was no room for a line the next one is unsure of all that was lost") {
  Lines lines;
  lines.add(100, 200);
  lines.known(300);
  lines.full = true;
  lines.add(300, 400);
  lines.add(500, 600);
  lines.known(700);
  lines.full = false;
  lines.add(800, 900);
  lines.known(1000);
  lines.add(1100, 1200);
  lines.end(1200);
  CHECK(lines.words == "100-200 300-1000?<200 1100-1200<1000");
}
