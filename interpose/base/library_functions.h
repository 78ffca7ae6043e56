#pragma once

#include <dlfcn.h>

#include <cstring>

#include "interpose/base/not_copied.h"

namespace tprof {

// Looks up functions of a library with a given dlsym. The handle is null if it was not opened.
class LibraryFunctions : NotCopied {
 public:
  using Find = void* (*)(void* handle, const char* name);
  LibraryFunctions(void* handle, Find by) : handle_(handle), find_(by), whole_(handle != nullptr) {}
  ~LibraryFunctions() { dlerror(); }  // the program must not see our lookup errors

  // Looks up nothing more after the first missing function.
  template <typename F>
  void find(F*& function, const char* name) {
    if (!whole_) return;
    void* found = find_(handle_, name);
    whole_ = found != nullptr;
    std::memcpy(&function, &found, sizeof function);
  }
  bool whole() const { return whole_; }

 private:
  void* handle_;
  Find find_;
  bool whole_;
};

}  // namespace tprof
