// Takes from the process what it needs to map more, open more or start more, at some moment.
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
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
  if (what == "space") return set_limit(RLIMIT_AS, address_space_in_use());
  if (what == "data") return set_limit(RLIMIT_DATA, 0);
  if (what == "files") return set_limit(RLIMIT_NOFILE, 0);
  if (what == "threads") {
    refuse(SYS_clone);
    return refuse(SYS_clone3);
  }
  const int zero = open("/dev/zero", O_RDONLY);
  while (mmap(nullptr, 1, PROT_READ, MAP_SHARED, zero, 0) != MAP_FAILED) {
  }
}

}  // namespace

int starved(std::string_view what, std::string_view when, std::string_view how) {
  // The program itself has taken before what it needs.
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, 16 << 20);
  mallopt(M_TRIM_THRESHOLD, 16 << 20);
  void* volatile room = std::malloc(4 << 20);
  std::free(room);
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
