// The life of tracing in one process: lazy start at the first call that counts (session.h), fork,
// exit, and the ends at which no exit handler runs: _exit, and the execution of another program.
#pragma once

#include "interpose/session/session.h"

namespace tprof::session {

// A communicator was made, so whatever else moves data may have been loaded by now.
[[gnu::cold]] void note_loaded_objects();

// True if the calling process has a session to close. A child of vfork, which shares our memory,
// and a process that is not traced have none.
bool to_be_closed();

// The program ends with this status. A signal handler may be the caller.
void note_exit_status(int status);

// Closes the file, on the writer's thread. The caller may be a signal handler on a small stack, of
// a thread that holds our locks or is in the middle of a record. If that takes too long, the file
// stays as a kill would leave it. Other threads go on: what they do from now on is lost with them
// or, after stay(), counts.
void leave();
void stay();  // the other program could not be executed

}  // namespace tprof::session
