// The life of tracing in one process: the start at the first call that counts (session.h), fork,
// exit, and ends without exit handlers: _exit.
#pragma once

#include "interpose/session/session.h"

namespace tprof::session {

// True if the calling process has a session to close: not in a child of vfork, which shares our
// memory, and not if it is not traced.
bool to_be_closed();

// The program ends with this status. May be called in a signal handler.
void note_exit_status(int status);

// Closes the file, on the writer's thread. The caller may be a signal handler on a small stack, in
// a thread that holds our locks or is writing a record. If it takes too long, the file stays as
// after a kill. Other threads go on: their calls are lost.
void leave();

}  // namespace tprof::session
