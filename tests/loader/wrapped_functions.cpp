// Prints the functions of the tables in interpose/api, one a line.
#include <cstdio>

#include "interpose/api/functions.h"

int main() {
  for (const tprof::FunctionInfo& f : tprof::kFunctions) {
    if (!f.name.empty()) std::printf("%.*s\n", static_cast<int>(f.name.size()), f.name.data());
  }
}
