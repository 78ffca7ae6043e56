// The interface between unwind.c and walk.cpp.
#pragma once

#include <link.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

// Returns false if there is no thread-local key left.
int tprof_unwind_begin(void);

// Fills `to` with the return addresses of the caller and its callers, and returns their number.
// Reads no stack beyond `stack_end`. `cut`: there are more, unknown ones.
size_t tprof_unwind(uintptr_t* to, size_t most, uintptr_t stack_end, int* cut);

// Forgets this thread's unwinding rules.
void tprof_unwind_forget(void);

void tprof_unwind_lock(void);
void tprof_unwind_unlock(void);
// Runs `step` while no object can be unloaded.
int tprof_unwind_while_loaded(int (*step)(void*), void* cursor);
int tprof_unwind_objects(int (*callback)(struct dl_phdr_info*, size_t, void*), void* data);

#if defined(__cplusplus)
}
#endif
