// Looks around in the process for what affects coverage: once at the start, when a communicator is
// made, and at the end. The thread that asks does it, since only it may hold the loader's lock.
#pragma once

#include <string_view>

#include "interpose/api/functions.h"
#include "interpose/format/coverage.h"

namespace tprof::coverage {

// Notes it once, however often it is called.
void note(Head& head, Note what, std::string_view path);

// Notes other preloads, tools that variables bring in, and objects that come before us. None of
// these changes.
void note_environment(Head& head);

// Notes mapped objects whose effect is known. Cheap if none was mapped since the last time.
void note_objects(Head& head);

// Notes the mapped objects alone. It asks for none of the loader's locks under which a library's
// constructor runs, since nobody knows how long that takes.
void note_mapped(Head& head);

// The program took `fn` from a library by address: its calls through that address bypass us.
void taken_by_address(Fn fn, const void* address);

// A call that moves data was passed on uncounted, within another (Note::nested). Takes no lock, and
// may be called in a signal handler.
void passed_on(const void* from);

void after_fork();  // in the child

}  // namespace tprof::coverage
