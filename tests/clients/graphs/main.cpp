// graphs SITUATION: captures, builds and changes CUDA graphs in every way, with copies and an
// all-gather in them. Without an argument it prints the names of the situations. It ends with the
// line of a call that did not do what it should have.
#include "situations.h"

#include <cstring>

int main(int argc, char** argv) {
  for (const Situation* s : {captured_situations(), by_hand_situations(), executable_situations(),
                             past_us_situations()}) {
    for (; s->name != nullptr; ++s) {
      if (argc == 1) std::printf("%s\n", s->name);
      if (argc != 2 || std::strcmp(argv[1], s->name) != 0) continue;
      set_up();
      s->run();
      OK(ncclCommDestroy(comm));
      return 0;
    }
  }
  return argc == 1 ? 0 : 2;
}
