// The part of nongnu.org's libunwind that walks the calling thread's frames, with changes that a
// guest needs:
//
// - It reads only the tables of loaded objects, and the stack from here to its end. The original
//   reads wherever a register points, or asks the kernel first, through a pipe that it keeps open.
// - A walk ends at code without tables. The original guesses, reads files, and may abort.
// - It uses our lock and our access to the loader's list, which are safe with forks.
// - Without a thread-local key there are no frames. The original takes the program's first key.
#undef NDEBUG
#define NDEBUG
#define UNW_LOCAL_ONLY
#define HAVE_DL_ITERATE_PHDR 1
#define HAVE_ELF_H 1
#define HAVE_LINK_H 1
#define HAVE_PIPE2 1
#define PACKAGE_STRING ""
#define PACKAGE_BUGREPORT ""

#include "interpose/marks/unwind.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#define dwarf_get get_from_anywhere
#define dwarf_put put_anywhere
#include "libunwind_i.h"
#undef dwarf_get
#undef dwarf_put

#if defined(__x86_64__)
#define ARCH(name) x86_64_##name
#define register_in x86_64_r_uc_addr
enum { kCode = UNW_X86_64_RIP, kStack = UNW_X86_64_RSP, kFrame = UNW_X86_64_RBP };
#else
#define ARCH(name) aarch64_##name
#define register_in tdep_uc_addr
enum { kCode = UNW_AARCH64_PC, kStack = UNW_AARCH64_SP, kFrame = UNW_AARCH64_X29 };
#endif

// The stack that may be read.
static _Thread_local struct { unw_word_t begin, end; } t_stack;

static int readable(unw_word_t at) {
  return at >= t_stack.begin && at <= t_stack.end - sizeof(unw_word_t);
}

// A return address may be signed, in the bits above the address.
static const unw_word_t kAddressBits = ((unw_word_t)1 << 48) - 1;

static inline int read_word(unw_word_t at, unw_word_t* value) {
  if (!readable(at)) return -UNW_EINVAL;
  memcpy(value, (const void*)at, sizeof *value);
  *value &= kAddressBits;
  return 0;
}

static int dwarf_get(struct dwarf_cursor* cursor, dwarf_loc_t place, unw_word_t* value) {
  (void)cursor;
  if (DWARF_IS_NULL_LOC(place)) return -UNW_EBADREG;
  if (!DWARF_IS_VAL_LOC(place)) return read_word(DWARF_GET_LOC(place), value);
  *value = DWARF_GET_LOC(place);
  return 0;
}

// Writes to the initial registers of the walk, which are on this stack.
static int dwarf_put(struct dwarf_cursor* cursor, dwarf_loc_t place, unw_word_t value) {
  (void)cursor;
  if (!readable(DWARF_GET_LOC(place))) return -UNW_EBADREG;
  memcpy((void*)DWARF_GET_LOC(place), &value, sizeof value);
  return 0;
}

#include "dwarf_i.h"
#include "unwind_i.h"

// tprof_unwind_begin() has done it.
static int begun(pthread_once_t* once, void (*begin)(void)) {
  (void)once, (void)begin;
  return 0;
}

// Replaces parts of libc, and of libunwind's files that are not included.
#undef SIGPROCMASK
#define SIGPROCMASK sigprocmask  // pthread_sigmask() has a newer version in a newer glibc
#undef mutex_init
#define mutex_init(lock) ((void)(lock))
#undef mutex_lock
#define mutex_lock(lock) tprof_unwind_lock()
#undef mutex_unlock
#define mutex_unlock(lock) tprof_unwind_unlock()
#define pthread_once begun
#define dl_iterate_phdr tprof_unwind_objects
#define pipe2(ends, flags) ((void)0)
#define elf_map_image(image, path) (-1)
#undef tdep_get_exe_image_path
#define tdep_get_exe_image_path(path) ((void)0)
#undef unw_flush_cache
#define unw_flush_cache(space, from, to) ((void)0)
#define _Uelf64_get_proc_name(...) (-UNW_ENOINFO)
#define _Uelf64_get_elf_filename(...) (-UNW_ENOINFO)
#define _U_dyn_info_list_addr() 0
#undef ACCESS_MEM_FAST
#define ACCESS_MEM_FAST(result, validate, cursor, at, to) ((result) = read_word(at, &(to)))

HIDDEN bool unw_address_is_valid(unw_word_t at, size_t size) {
  (void)at, (void)size;
  return false;
}
HIDDEN int ARCH(local_resume)(unw_addr_space_t space, unw_cursor_t* cursor, void* registers) {
  (void)space, (void)cursor, (void)registers;
  return -UNW_EINVAL;
}
HIDDEN int unwi_find_dynamic_proc_info(unw_addr_space_t space, unw_word_t code,
                                       unw_proc_info_t* info, int all, void* registers) {
  (void)space, (void)code, (void)info, (void)all, (void)registers;
  return -UNW_ENOINFO;
}
HIDDEN void unwi_put_dynamic_unwind_info(unw_addr_space_t space, unw_proc_info_t* info,
                                         void* registers) {
  (void)space, (void)info, (void)registers;
}
HIDDEN int dwarf_step(struct dwarf_cursor* cursor);
static int step(void* cursor) {
  return dwarf_step(&((struct cursor*)cursor)->dwarf);
}
int unw_step(unw_cursor_t* cursor) {
  return tprof_unwind_while_loaded(step, cursor);
}

#include "Gget_accessors.c"
#include "Gget_reg.c"
#include "Gglobal.c"
#include "Ginit.c"
#include "Ginit_local.c"
#include "Gregs.c"
#include "Gstash_frame.c"
#include "Gtrace.c"
#include "global.c"
#include "init.c"
#include "is_fpreg.c"
#include "mempool.c"
#if defined(__x86_64__)
#include "Gos-linux.c"
#endif
#define abort() return -UNW_EINVAL
#include "Gfde.c"
#include "Gfind_proc_info-lsb.c"
#define put_unwind_info put_info  // Ginit.c has one of its own
#include "Gparser.c"
#undef put_unwind_info
#include "Gpe.c"
// An expression is read from a table. The word that it points to (`tmp1`) has to be on the stack.
#define CHECKED(read, space, a, at, to, registers)                       \
  (__builtin_strcmp(#at, "&tmp1") == 0 && !readable(*(at)) ? -UNW_EINVAL \
                                                           : read(space, a, at, to, registers))
#define dwarf_readu8(...) CHECKED(dwarf_readu8, __VA_ARGS__)
#define dwarf_readu16(...) CHECKED(dwarf_readu16, __VA_ARGS__)
#define dwarf_readu32(...) CHECKED(dwarf_readu32, __VA_ARGS__)
#define dwarf_readu64(...) CHECKED(dwarf_readu64, __VA_ARGS__)
#define dwarf_readw(...) CHECKED(dwarf_readw, __VA_ARGS__)
#include "Gexpr.c"

int tprof_unwind_begin(void) {
  if (trace_cache_once_happen) return 1;
  if (pthread_key_create(&trace_cache_key, trace_cache_free) != 0) return 0;
  tdep_init();
  mempool_init(&trace_cache_pool, sizeof(unw_trace_cache_t), 0);
  local_addr_space.caching_policy = UNW_CACHE_NONE;
  trace_cache_once_happen = 1;
  return 1;
}

void tprof_unwind_forget(void) {
  if (tls_cache == NULL) return;
  for (size_t i = 0; i < (size_t)1 << tls_cache->log_size; ++i) tls_cache->frames[i] = empty_frame;
  tls_cache->used = 0;
}

__attribute__((noinline)) size_t tprof_unwind(uintptr_t* to, size_t most, uintptr_t stack_end,
                                              int* cut) {
  struct {
    unw_cursor_t cursor;
    unw_context_t registers;
  } s;
  t_stack.begin = (unw_word_t)&s;
  t_stack.end = stack_end;
  *(void**)register_in(&s.registers, kCode) = __builtin_return_address(0);
  *(void**)register_in(&s.registers, kStack) = __builtin_dwarf_cfa();
  *(void**)register_in(&s.registers, kFrame) = *(void**)__builtin_frame_address(0);
  unw_init_local(&s.cursor, &s.registers);
  memset(to, 0, most * sizeof *to);
  int size = (int)most;
  const int result = tdep_trace(&s.cursor, (void**)to, &size);
  size_t frames = 0;
  // A failed walk may not return how far it got.
  while (frames < most && to[frames] != 0) ++frames;
  *cut = result < 0 || frames == most;
#if defined(__aarch64__)
  for (size_t i = 0; i < frames; ++i) ++to[i];  // converts call addresses to return addresses
#endif
  return frames;
}
