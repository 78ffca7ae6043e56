// A program begins in __libc_start_main, which has a new version since glibc 2.34. This one begins
// in the first version, so that it starts from glibc 2.28 on: the linker is told to wrap the
// function.
#include "interpose/oldest_glibc.h"

// NOLINTBEGIN(bugprone-reserved-identifier): the linker chooses the name
extern "C" {
using Main = int (*)(int, char**, char**);
using Function = void (*)();
int first_start_main(Main main, int argc, char** argv, Function init, Function fini,
                     Function loader_fini, void* stack_end);
__asm__(".symver first_start_main,__libc_start_main@" TPROF_BASE);
int __wrap___libc_start_main(Main main, int argc, char** argv, Function init, Function fini,
                             Function loader_fini, void* stack_end);
int __wrap___libc_start_main(Main main, int argc, char** argv, Function init, Function fini,
                             Function loader_fini, void* stack_end) {
  return first_start_main(main, argc, argv, init, fini, loader_fini, stack_end);
}
}
// NOLINTEND(bugprone-reserved-identifier)
