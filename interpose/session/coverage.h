// Looking around in the process for what bears on coverage: once at the start, when a communicator
// is made, and at the end. By the thread that asks, since only it may hold the loader's lock.
#pragma once

#include <string_view>

#include "interpose/api/functions.h"
#include "interpose/format/coverage.h"

namespace tprof::coverage {

// Once however often it is said.
void note(Head& head, Note what, std::string_view path);

// Other preloads, tools that variables bring in, and who comes before us: does not change.
void note_environment(Head& head);

// Mapped objects that are known for what they do. Cheap where none was mapped since the last time.
void note_objects(Head& head);

// The mapped objects alone: asks for none of the loader's locks that a library's constructor, of
// which nobody knows how long it takes, runs under.
void note_mapped(Head& head);

// The program took `fn` from a library by address: its calls through that pass us by.
void taken_by_address(Fn fn, const void* address);

// A call that moves data was passed on uncounted, within another (Note::nested). Takes no lock, and
// may be called in a signal handler.
void passed_on(const void* from);

void after_fork();  // in the child

}  // namespace tprof::coverage
