/* Functions by which a program tells tprof what it does, and asks what was counted. A program that
 * includes this header needs no library to link: if libtprof.so is not preloaded, each function
 * here is a test for null and returns 0 (tprof_rank: -1).
 *
 *   tprof_push("attention");            begins a scope on this thread
 *   tprof_pop(NULL);                    ends the innermost one
 *
 * C99 and C++98 or later, x86-64 and Arm (elsewhere position-independent code only). Every function
 * may be called from any thread. None prints, allocates on the heap, or touches CUDA; all but
 * tprof_flush return at once. A scope takes some 0.1 us.
 *
 * Everything that the program tells goes into the rank file as NVTX ranges do, in the domain
 * "tprof": `tprof merge` draws it, `tprof summary --by range` sums it up. The first of these calls
 * begins the trace of a process, as its first call of NCCL does. */
#ifndef TPROF_H
#define TPROF_H

#include <stddef.h>
#include <stdint.h>

#define TPROF_OK 0
#define TPROF_NOT_OPEN (-1)     /* an end without its begin */
#define TPROF_BAD_ARGUMENT (-2) /* nothing was recorded */
#define TPROF_TIMED_OUT (-3)    /* of tprof_flush */

/* NOLINTBEGIN(modernize-use-nullptr): it is C too */

/* A scope or instant has these besides its name. A field that is 0 or NULL is not told. */
struct tprof_with {
  const char* categories; /* one, or several with commas between them; 58 bytes are kept */
  uint64_t elements;      /* that it handles; those told at its begin and its end are added up */
  uint64_t bytes;
  uint64_t time_ns;  /* when it was, CLOCK_REALTIME (time.time_ns()); if that is not between the
                        begin of the trace and now, the nearer of the two counts */
  const char* error; /* at an end: the type of what was thrown through it; 48 bytes are kept */
};

/* For tprof_step. */
#define TPROF_NEXT_STEP (-1) /* one more than the last; the first is 1 */
#define TPROF_NO_STEP (-2)   /* the step ends, and none begins */

/* The functions of the library, in the order in which they were added. Programs call those below.
 */
struct tprof_functions {
  size_t size; /* of this struct as the library knows it */
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

/* Returns the library's table, NULL if it is not preloaded. The name is weak, and the dynamic
 * linker looks it up even in a program that is not position-independent. In such a program a weak
 * name in C would be 0 once it is linked. */
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

/* Begins a scope of the calling thread. Scopes of a thread lie in one another, 32 deep (deeper ones
 * are counted as dropped). `name`: 128 bytes are kept; NULL and "" are TPROF_BAD_ARGUMENT. */
static inline int tprof_push_with(const char* name, const struct tprof_with* with) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? TPROF_OK : f->push(name, with);
}
static inline int tprof_push(const char* name) {
  return tprof_push_with(name, NULL);
}

/* Does the same, and names the `stream` (a cudaStream_t or CUstream) on which the scope has the
 * device do something. With TPROF_TIMING=events it is timed there too, between an event where it
 * begins and one where it ends. The totals have that time once the device has finished it. */
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

/* Does the same, and returns how long it was: nanoseconds, 0 if it was not recorded, or one of the
 * codes above, which are below 0.
 */
static inline int64_t tprof_pop_timed(const char* name, const struct tprof_with* with) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? 0 : f->pop_timed(name, with);
}

/* Begins a scope that any thread may end, by the number that this returns. It is for coroutines,
 * and for work that moves between threads. There can be 64 at a time. 0: it is not recorded, and
 * tprof_end(0) does nothing. TPROF_NOT_OPEN (from tprof_end): it has ended before. */
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

/* Tells what up to 8 values are from now on, each with its key. Name and keys have 128 bytes
 * together, with the NUL behind each; more, or a key twice, is TPROF_BAD_ARGUMENT. `time_ns` is as
 * in tprof_with. */
static inline int tprof_counter_at(const char* name, const char* const* keys, const double* values,
                                   size_t n, uint64_t time_ns) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? TPROF_OK : f->counter(name, keys, values, n, time_ns);
}
static inline int tprof_counter(const char* name, const char* const* keys, const double* values,
                                size_t n) {
  return tprof_counter_at(name, keys, values, n, 0);
}

/* Begins a training step, and ends the one before it. `number` is from 0, or one of those above.
 * TPROF_STEP=auto, the default, finds steps by these marks. */
static inline int tprof_step(int64_t number) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? TPROF_OK : f->step(number);
}

/* Tells what the calling thread does until it says otherwise: "load", "forward", "backward" or
 * "optimizer"; NULL: none of these. A phase lies between the pushes and pops around it. */
static inline int tprof_phase(const char* name) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? TPROF_OK : f->phase(name);
}

/* Begins a new epoch: tprof_totals counts from here. The trace counts the whole run all the same,
 * and knows what each epoch counted (tprof summary --epoch). */
static inline int tprof_reset(void) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? TPROF_OK : f->reset();
}

/* From tprof_pause to tprof_resume nothing counts in tprof_totals (a scope counts when it ends), so
 * that it covers only the program's own windows. The trace counts all the same. */
static inline int tprof_pause(void) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? TPROF_OK : f->pause(1);
}
static inline int tprof_resume(void) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? TPROF_OK : f->pause(0);
}

/* Waits until all that was told and called before is in the rank file, at most for that time. */
static inline int tprof_flush(uint32_t timeout_ms) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? TPROF_OK : f->flush(timeout_ms);
}

/* Waits until the totals have the times on the device of all scopes that ended before, at most for
 * that time. */
static inline int tprof_flush_device(uint32_t timeout_ms) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? TPROF_OK : f->flush_device(timeout_ms);
}

/* Returns 1 if what is told is recorded. */
static inline int tprof_enabled(void) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? 0 : f->enabled();
}

/* Returns the process's rank as the launcher or its largest communicator told it; -1: not known. */
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
 * of the last. The names mean what they do in the ledger of the trace; buckets without a call are
 * left out. Scopes are those that ended, by name and category, whether or not they have a line; one
 * that ended before the reset only has a count of 0. Returns its bytes with the NUL: nothing was
 * written if that is more than `size`.
 */
static inline size_t tprof_totals(char* json, size_t size) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? 0 : f->totals(json, size);
}

/* Does both at one moment: no call of another thread gets lost between them. There is no reset if
 * the result is more than `size`. */
static inline size_t tprof_totals_and_reset(char* json, size_t size) {
  const struct tprof_functions* f = tprof_found();
  return f == NULL ? 0 : f->totals_and_reset(json, size);
}

/* NOLINTEND(modernize-use-nullptr) */
#endif
