// libc's functions that end the program without its exit handlers.
//
// Every process of the job gets here, with or without a GPU, even as a child of vfork, which shares
// its parent's memory, and in signal handlers. If there is nothing to close, these functions only
// pass calls on. The real ones are looked up when the library is loaded: later another thread may
// hold the loader's lock while this one forks.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "interpose/base/mapped_symbols.h"
#include "interpose/life/life.h"

#define TPROF_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Real = tprof::FunctionOnDemand<void (*)(int)>;
constinit Real g_exit("_exit");
constinit Real g_Exit("_Exit");

[[gnu::constructor]] void find_real_ones() {
  g_exit.get();
  g_Exit.get();
}

[[noreturn]] void end(Real& real, int status) {
  if (tprof::session::to_be_closed()) {
    tprof::session::note_exit_status(status);
    tprof::session::leave();
  }
  if (auto* const function = real.get()) function(status);
  for (;;) syscall(SYS_exit_group, status);
}

}  // namespace

TPROF_EXPORT void _exit(int status) {
  end(g_exit, status);
}
TPROF_EXPORT void _Exit(int status) noexcept {
  end(g_Exit, status);
}
