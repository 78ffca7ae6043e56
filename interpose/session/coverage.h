// Looks in the process for what affects coverage: at the start, when a communicator is made, and at
// the end. The calling thread does it, since it may already hold the loader's lock.
#pragma once

#include <string_view>

#include "interpose/api/functions.h"
#include "interpose/format/coverage.h"

namespace tprof::coverage {

// Notes it once, however often it is called.
void note(Note what, std::string_view path);

// Notes other preloads, tools that environment variables load, and objects before this library.
// None of these changes.
void note_environment();

// Notes mapped objects whose effect is known. Cheap if none was mapped since the last time.
void note_objects();

// Notes only the mapped objects. It takes no lock of the loader under which libraries' constructors
// run, since these may take any time.
void note_mapped();

// The program took `fn` from a library by address: calls through that address bypass the wrappers.
void taken_by_address(Fn fn, const void* address);

// A data-moving call within another one was passed on without counting it (Note::nested). Takes no
// lock, so usable in a signal handler.
void passed_on(const void* from);

void after_fork();  // in the child

}  // namespace tprof::coverage
