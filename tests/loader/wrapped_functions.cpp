// Prints the functions of the tables in interpose/api that have wrappers, one a line.
#include <cstdio>

#include "interpose/api/functions.h"

int main() {
  for (const tprof::FunctionInfo& f : tprof::kFunctions) {
    const bool wrapped = !f.name.empty();
    if (wrapped) std::printf("%.*s\n", static_cast<int>(f.name.size()), f.name.data());
  }
}
