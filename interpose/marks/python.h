// The Python frames of the calling thread, read without the interpreter's lock.
//
// This is safe because the frames belong to this thread, which is in a C function called from them,
// so they do not change. They are only read: without reference counts, allocations or locks. The
// fields' offsets depend on CPython's version: the table in python.cpp has the tested versions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/base/text.h"

namespace tprof::python {

struct Frame {
  const char* code;  // PyCodeObject
  int at;            // offset of the instruction, in bytes
};

// Finds the interpreter of this process. Returns false if there is none, or if we can't read its
// frames, with the reason in `why` (empty: no Python).
bool find(FixedText& why);

// Fills `to` with at most `most` of the calling thread's frames, innermost first, and returns their
// number; 0 if it runs no Python.
std::size_t frames(Frame* to, std::size_t most);

// Identifies a frame's code object, to distinguish it from a later object at the same address.
std::uint64_t identity(const Frame& frame);

// Appends function, file and line in the format of format/sites.h. Returns false if they don't fit.
bool describe(const Frame& frame, FixedText& to, std::size_t room);

}  // namespace tprof::python
