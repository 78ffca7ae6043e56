// Prints what format/schedule.h does in each of the first steps of the schedules on standard input:
// one line each, one digit per step (0 nothing, 1 warm-up, 2 record, 3 the last of a window).
//
//   schedule_actions STEPS
#include <cstdlib>
#include <iostream>
#include <string>

#include "interpose/format/schedule.h"

int main(int argc, char** argv) {
  const unsigned long steps = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 0;
  for (std::string line; std::getline(std::cin, line);) {
    tprof::Schedule schedule;
    if (!tprof::parse_schedule(line, schedule)) return 1;
    for (unsigned long n = 0; n < steps; ++n) {
      std::cout << static_cast<int>(tprof::action_of(schedule, n));
    }
    std::cout << '\n';
  }
}
