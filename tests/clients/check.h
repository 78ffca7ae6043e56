// Checks of calls: a program that gets another answer than it should says where, and ends.
#pragma once

#include <cstdio>
#include <cstdlib>

inline void check(bool right, const char* what, const char* file, int line) {
  if (right) return;
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what);
  std::_Exit(1);
}
#define MUST(condition) check((condition), #condition, __FILE__, __LINE__)
#define OK(call) check(static_cast<int>(call) == 0, #call, __FILE__, __LINE__)
#define REFUSED(call) check(static_cast<int>(call) != 0, #call, __FILE__, __LINE__)
