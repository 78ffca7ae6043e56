// unwind.c for walk.cpp, and what walk.cpp does for it.
#pragma once

#include <link.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

// False: there is no thread-local key left.
int tprof_unwind_begin(void);

// Fills `to` with the addresses that the caller and its callers return to, and reads no stack
// beyond `stack_end`. Returns how many there are. `cut`: there are more, that are not known.
size_t tprof_unwind(uintptr_t* to, size_t most, uintptr_t stack_end, int* cut);

// Forgets what this thread knows of the code.
void tprof_unwind_forget(void);

void tprof_unwind_lock(void);
void tprof_unwind_unlock(void);
// Runs `step` while no object can be unloaded.
int tprof_unwind_while_loaded(int (*step)(void*), void* cursor);
int tprof_unwind_objects(int (*callback)(struct dl_phdr_info*, size_t, void*), void* data);

#if defined(__cplusplus)
}
#endif
