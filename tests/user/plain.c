/* Calls each function of the header once, as C99. */
#include <stdio.h>

#include "interpose/user/tprof.h"

int tell_all_once(void);

int tell_all_once(void) {
  const char* keys[2] = {"full", "empty"};
  const double values[2] = {3, 0.5};
  struct tprof_with with = {"io,checkpoint", 5, 20, 0, NULL};
  char json[4096];
  uint64_t id;
  int sum = 0;
  sum += tprof_push_with("outer", &with);
  sum += tprof_push("inner");
  sum += tprof_pop("inner");
  with.error = "Bad";
  sum += tprof_pop_with(NULL, &with);
  id = tprof_start("moves");
  sum += tprof_end(id);
  sum += tprof_instant("now");
  sum += tprof_counter("queue", keys, values, 2);
  sum += tprof_step(7);
  sum += tprof_phase("forward");
  sum += tprof_phase(NULL);
  sum += tprof_step(TPROF_NO_STEP);
  sum += tprof_reset();
  sum += tprof_flush(10000);
  sum += tprof_totals_and_reset(NULL, 0) > sizeof json;
  printf("sum %d enabled %d rank %d totals %d\n", sum, tprof_enabled(), tprof_rank(),
         tprof_totals(json, sizeof json) != 0);
  return sum;
}
