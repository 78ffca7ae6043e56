/* Functions by which a program describes its work to tprof, and reads the counts. A program that
 * includes this header need not link a library: if libtprof.so is not preloaded, each function here
 * only tests for null and returns 0 (tprof_rank: -1).
 *
 *   tprof_push("attention");            begins a scope on this thread
 *   tprof_pop(NULL);                    ends the innermost one
 *
 * C99 and C++98 or later, x86-64 and Arm (elsewhere position-independent code only). Every function
 * may be called from any thread. None prints, allocates on the heap, or calls CUDA; all except the
 * flushes return at once. A scope takes some 0.1 us.
 *
 * Scopes and counters go into the rank file as NVTX ranges do, in the domain "tprof": `tprof merge`
 * draws them, `tprof summary --by range` sums them up. The first of these calls begins the trace of
 * a process, as its first call of NCCL does. */
#ifndef TPROF_H
#define TPROF_H

#include <stddef.h>
#include <stdint.h>

#define TPROF_OK 0
#define TPROF_NOT_OPEN (-1)     /* an end without its begin */
#define TPROF_BAD_ARGUMENT (-2) /* nothing was recorded */
#define TPROF_TIMED_OUT (-3)    /* of tprof_flush */

/* NOLINTBEGIN(modernize-use-nullptr): it is C too */

/* Optional facts about a scope or instant. 0 or NULL: not given. */
struct tprof_with {
  const char* categories; /* one, or several separated by commas; 58 bytes are kept */
  uint64_t elements;      /* that it handles; the values at begin and end are added up */
  uint64_t bytes;
  uint64_t time_ns;  /* its time on CLOCK_REALTIME (time.time_ns()), limited to the time from the
                        begin of the trace until now */
  const char* error; /* at an end: the type of the exception that left it; 48 bytes are kept */
};

/* For tprof_step. */
#define TPROF_NEXT_STEP (-1) /* the last number + 1; the first is 1 */
#define TPROF_NO_STEP (-2)   /* ends the step without beginning one */

/* The functions of the library, in the order in which they were added. Programs use the functions
 * below. */
struct tprof_functions {
  size_t size; /* of the library's version of this struct */
  int (*push)(const char* name, const struct tprof_with* with);
  int (*pop)(const char* name, const struct tprof_with* with);
  uint64_t (*start)(const char* name, const struct tprof_with* with);
  int (*end)(uint64_t id, const struct tprof_with* with);
  int (*instant)(const char* name, const struct tprof_with* with);
  int (*counter)(const char* name, const char* const* keys, const double* values, size_t n,
                 uint64_t time_ns);
  int (*step)(int64_t number);
  int (*phase)(const char* name);
  int (*reset)(void);
  int (*flush)(uint32_t timeout_ms);
  int (*enabled)(void);
  int (*rank)(void);
  size_t (*totals)(char* json, size_t size);
  size_t (*totals_and_reset)(char* json, size_t size);
  int64_t (*pop_timed)(const char* name, const struct tprof_with* with);
  int64_t (*end_timed)(uint64_t id, const struct tprof_with* with);
  int (*pause)(int on);
  int (*push_on)(const char* name, const struct tprof_with* with, void* stream);
  uint64_t (*start_on)(const char* name, const struct tprof_with* with, void* stream);
  int (*times_on_device)(void);
  int (*flush_device)(uint32_t timeout_ms);
};

/* Returns the library's table, NULL if it is not preloaded. The symbol is weak, and the dynamic
 * linker looks it up even in a program that is not position-independent, where a weak symbol in C
 * would become 0 at link time. */
static inline const struct tprof_functions* tprof_found(void) {
#if defined __x86_64__
  const struct tprof_functions* found;
  __asm__(
      ".weak tprof_functions_v1\n\t"
      "movq tprof_functions_v1@GOTPCREL(%%rip), %0"
      : "=r"(found));
  return found;
#elif defined __aarch64__
  const struct tprof_functions* found;
  __asm__(
      ".weak tprof_functions_v1\n\t"
      "adrp %0, :got:tprof_functions_v1\n\t"
      "ldr %0, [%0, #:got_lo12:tprof_functions_v1]"
      : "=r"(found));
  return found;
#else
  extern const struct tprof_functions tprof_functions_v1 __attribute__((weak));
  return &tprof_functions_v1;
#endif
}

/* Begins a scope of the calling thread. Scopes of a thread nest up to 32 deep (deeper ones are
 * counted as dropped). `name`: 128 bytes are kept; NULL and "" are TPROF_BAD_ARGUMENT. */
static inline int tprof_push_with(const char* name, const struct tprof_with* with) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? TPROF_OK : f->push(name, with);
}
static inline int tprof_push(const char* name) {
  return tprof_push_with(name, NULL);
}

/* The same for a scope with work on `stream` (a cudaStream_t or CUstream). With TPROF_TIMING=events
 * it is timed there, too, by an event at its beginning and one at its end. The totals include that
 * time once the device has finished. */
static inline int tprof_push_on(const char* name, const struct tprof_with* with, void* stream) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? TPROF_OK : f->push_on(name, with, stream);
}

/* Ends the thread's innermost scope, or the innermost of that name. TPROF_NOT_OPEN: there is none.
 */
static inline int tprof_pop_with(const char* name, const struct tprof_with* with) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? TPROF_OK : f->pop(name, with);
}
static inline int tprof_pop(const char* name) {
  return tprof_pop_with(name, NULL);
}

/* The same. Returns its duration in nanoseconds, 0 if it was not recorded, or a negative code from
 * above. */
static inline int64_t tprof_pop_timed(const char* name, const struct tprof_with* with) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? 0 : f->pop_timed(name, with);
}

/* Begins a scope that any thread may end by the returned number, for coroutines and work that moves
 * between threads. At most 64 can be open. 0: not recorded; tprof_end(0) does nothing. tprof_end
 * returns TPROF_NOT_OPEN if it has already ended. */
static inline uint64_t tprof_start_with(const char* name, const struct tprof_with* with) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? 0 : f->start(name, with);
}
static inline uint64_t tprof_start(const char* name) {
  return tprof_start_with(name, NULL);
}
static inline int tprof_end_with(uint64_t id, const struct tprof_with* with) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? TPROF_OK : f->end(id, with);
}
static inline int tprof_end(uint64_t id) {
  return tprof_end_with(id, NULL);
}

/* Records a moment. */
static inline int tprof_instant_with(const char* name, const struct tprof_with* with) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? TPROF_OK : f->instant(name, with);
}
static inline int tprof_instant(const char* name) {
  return tprof_instant_with(name, NULL);
}

/* Sets up to 8 values of a counter, each with its key. Name and keys may have 128 bytes in total,
 * with their NULs; more, or a repeated key, is TPROF_BAD_ARGUMENT. `time_ns` is as in tprof_with.
 */
static inline int tprof_counter_at(const char* name, const char* const* keys, const double* values,
                                   size_t n, uint64_t time_ns) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? TPROF_OK : f->counter(name, keys, values, n, time_ns);
}
static inline int tprof_counter(const char* name, const char* const* keys, const double* values,
                                size_t n) {
  return tprof_counter_at(name, keys, values, n, 0);
}

/* Begins a training step, and ends the previous one. `number` is from 0, or one of the values
 * above. TPROF_STEP=auto, the default, finds steps by these marks. */
static inline int tprof_step(int64_t number) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? TPROF_OK : f->step(number);
}

/* Sets the calling thread's phase: "load", "forward", "backward" or "optimizer"; NULL: none. A
 * phase is nested in the scopes around it. */
static inline int tprof_phase(const char* name) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? TPROF_OK : f->phase(name);
}

/* Begins a new epoch: tprof_totals counts from here. The trace still counts the whole run, and the
 * counts of each epoch (tprof summary --epoch). */
static inline int tprof_reset(void) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? TPROF_OK : f->reset();
}

/* From tprof_pause to tprof_resume nothing counts in tprof_totals (a scope counts when it ends), so
 * that the totals cover only parts of the run. The trace still counts everything. */
static inline int tprof_pause(void) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? TPROF_OK : f->pause(1);
}
static inline int tprof_resume(void) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? TPROF_OK : f->pause(0);
}

/* Waits, at most for that time, until everything before is in the rank file. */
static inline int tprof_flush(uint32_t timeout_ms) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? TPROF_OK : f->flush(timeout_ms);
}

/* Waits, at most for that time, until the totals include the device times of all scopes ended
 * before. */
static inline int tprof_flush_device(uint32_t timeout_ms) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? TPROF_OK : f->flush_device(timeout_ms);
}

/* Returns 1 if scopes and counters are recorded. */
static inline int tprof_enabled(void) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? 0 : f->enabled();
}

/* Returns the process's rank, from the launcher or its largest communicator; -1: not known. */
static inline int tprof_rank(void) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? -1 : f->rank();
}

/* Writes the process's exact counts since tprof_reset, as JSON with a NUL:
 *   {"rank":0,"epoch":0,"since_ns":0,"buckets":{"ALLGATHER":{"calls":9,"count":..,"elements":..,
 *    "bytes":..,"host_ns":..,"device_ns":..,"device_timed":..,"failed":..},..,"ALL":{..}},
 *    "scopes":[{"scope":"load","category":"","count":3,"total_ns":..,"elements":..,"bytes":..,
 *    "errors":..,"device_ns":..,"device_timed":..},..]}
 * `epoch` is how often tprof_reset was called since the trace began; `since_ns` is CLOCK_REALTIME
 * of the last reset. Names are as in the trace's ledger; buckets without a call are left out.
 * Scopes are the ended ones, by name and category, with or without a line; scopes that ended only
 * before the reset have a count of 0. Returns the bytes needed with the NUL: if more than `size`,
 * nothing was written.
 */
static inline size_t tprof_totals(char* json, size_t size) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? 0 : f->totals(json, size);
}

/* Both at one moment, so that no call of another thread is lost in between. Does not reset if the
 * result is larger than `size`. */
static inline size_t tprof_totals_and_reset(char* json, size_t size) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? 0 : f->totals_and_reset(json, size);
}

/* NOLINTEND(modernize-use-nullptr) */
#endif
