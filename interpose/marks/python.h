// The Python frames of the calling thread, read without the interpreter's lock.
//
// This is safe because the frames belong to this thread, which stands in a C function below them,
// so nobody changes or frees them meanwhile. They are only read: no reference is counted, nothing
// is allocated, and no lock is taken. Fields lie elsewhere in each version of CPython: the table in
// python.cpp knows the versions that were tried.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/base/text.h"

namespace tprof::python {

struct Frame {
  const char* code;  // PyCodeObject
  int at;            // offset of the instruction, in bytes
};

// Finds the interpreter of this process. False: there is none, or one whose frames we can't read;
// `why` then says so (empty: no Python).
bool find(FixedText& why);

// Fills `to` with the calling thread's frames, innermost first, and returns how many there are: at
// most `most`, and none if it runs no Python.
std::size_t frames(Frame* to, std::size_t most);

// Identifies a frame's code object, so that a later object at the same address is not mistaken for
// it.
std::uint64_t identity(const Frame& frame);

// Appends function, file and line as format/sites.h has them. False: there was no room.
bool describe(const Frame& frame, FixedText& to, std::size_t room);

}  // namespace tprof::python
