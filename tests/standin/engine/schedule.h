// What ran on the devices and when, for tests of what says it measured that (STANDIN_SCHEDULE).
#pragma once

#include <cstddef>
#include <cstdint>

namespace standin::schedule {

// One line in schedule-<pid>, these members in this order. Times are CLOCK_MONOTONIC ns on the
// device's own time line (stream.h).
struct Line {
  unsigned long long stream = 0;
  // Counted functions' names, with '+' between those of one group; else "kernel", "memset", "host"
  // (a function of the program), "marker" (events and waits), "graph" (from the first to the last
  // of a launch, whose parts have lines of their own) or "other".
  const char* what = "";
  int64_t reached_ns = 0;  // the stream had come to it
  int64_t began_ns = 0;    // it waited for nothing any more
  int64_t ended_ns = 0;
  int device = 0;
  size_t calls = 0;       // counted ones in it
  bool in_graph = false;  // a launch of a graph executed it
  const char* way = "-";  // of a copy: H2D, …
};
void ran(const Line& line);
bool wanted();

}  // namespace standin::schedule
