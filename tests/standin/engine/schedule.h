// Records what ran on the devices and when, to test measurements against (STANDIN_SCHEDULE).
#pragma once

#include <cstddef>
#include <cstdint>

namespace standin::schedule {

// One line in schedule-<pid>, with these members in this order. Times are CLOCK_MONOTONIC ns on the
// device's own time line (stream.h).
struct Line {
  unsigned long long stream = 0;
  // The names of counted functions, with '+' between those of one group. Otherwise it is "kernel",
  // "copies" (a batch), "memset", "host" (a function of the program), "marker" (events and waits),
  // "graph" (a launch from its first work to its last; its parts have lines of their own),
  // "cuProfilerStart", "cuProfilerStop" or "other".
  const char* what = "";
  int64_t reached_ns = 0;  // the stream came to it
  int64_t began_ns = 0;    // all that it waited for had ended
  int64_t ended_ns = 0;
  int device = 0;
  size_t calls = 0;       // number of counted calls in it
  bool in_graph = false;  // a launch of a graph executed it
  const char* way = "-";  // a copy's direction: H2D, …
};
void ran(const Line& line);
bool wanted();

}  // namespace standin::schedule
