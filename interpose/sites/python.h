// The Python frames of the calling thread, read without the interpreter's lock.
//
// Why that is safe: the frames belong to this thread, which stands in a C function below them, so
// nobody changes or frees them meanwhile. They are only read: no reference is counted, nothing is
// allocated, and no lock is taken. What is read lies elsewhere in each version of CPython: the
// table in python.cpp knows the ones that were tried.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/base/text.h"

namespace tprof::python {

struct Frame {
  const char* code;  // PyCodeObject
  int at;            // of the instruction, in bytes
};

// Finds the interpreter of this process. False: there is none, or one whose frames we can't read;
// `why` then says so (empty: no Python).
bool find(FixedText& why);

// The calling thread's, innermost first, at most `most` of them. None where it runs no Python.
std::size_t frames(Frame* to, std::size_t most);

// Of the code that a frame is of: what tells it from another that gets its address later.
std::uint64_t identity(const Frame& frame);

// Appends function, file and line as format/sites.h has them. False: there was no room.
bool describe(const Frame& frame, FixedText& to, std::size_t room);

}  // namespace tprof::python
