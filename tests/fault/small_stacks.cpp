// Calls of threads that have as little stack as a thread may have.
#include <limits.h>
#include <pthread.h>

#include <cstdio>
#include <memory>

#include "caller.h"
#include "modes.h"

namespace fault {
namespace {

void* call(void* comm) {
  std::make_unique<Caller>(static_cast<ncclComm_t>(comm), 1)->rounds(3);
  return nullptr;
}
// Makes the process's first call.
void* begin(void*) {
  return new_communicator();
}

void* on_a_small_stack(void* (*what)(void*), void* with) {
  pthread_attr_t attributes;
  pthread_t thread{};
  void* result = nullptr;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, static_cast<std::size_t>(PTHREAD_STACK_MIN));
  if (pthread_create(&thread, &attributes, what, with) != 0) fail("pthread_create");
  pthread_join(thread, &result);
  return result;
}

}  // namespace

int small_stacks(int n) {
  void* comm = on_a_small_stack(begin, nullptr);
  for (int i = 0; i < n; ++i) on_a_small_stack(call, comm);
  std::puts("all threads are gone");
  return 7;
}

}  // namespace fault
