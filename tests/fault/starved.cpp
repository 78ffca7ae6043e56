// Takes from the process what it needs to open more or start more, at some moment.
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <latch>
#include <thread>

#include "caller.h"
#include "modes.h"

namespace fault {
namespace {

void take(std::string_view what) {
  if (what == "files") return set_limit(RLIMIT_NOFILE, 0);
  refuse(SYS_clone);
  refuse(SYS_clone3);
}

}  // namespace

int starved(std::string_view what, std::string_view when, std::string_view how) {
  std::latch first(1);
  ncclComm_t comms[2] = {};
  std::thread second([&] {
    first.wait();
    Caller(comms[1], 2).rounds(300);
  });
  if (when == "before") take(what);
  for (ncclComm_t& comm : comms) comm = new_communicator();
  Caller caller(comms[0], 1);
  caller.rounds(300);
  if (when == "after") take(what);
  caller.rounds(300);
  if (when == "second") take(what);
  first.count_down();
  second.join();
  usleep(300'000);  // the writer has been through the rings
  if (when == "end") take(what);
  std::puts("all calls returned");
  std::fflush(stdout);
  if (how == "_exit") _exit(7);
  if (how == "kill") raise(SIGKILL);
  return 7;
}

}  // namespace fault
