#pragma once

#include <dlfcn.h>

#include <cstring>

namespace tprof {

// Finds functions of a library, one after the other. The handle is null if it was not opened.
class LibraryFunctions {
 public:
  explicit LibraryFunctions(void* handle) : handle_(handle), whole_(handle != nullptr) {}
  LibraryFunctions(const LibraryFunctions&) = delete;
  LibraryFunctions& operator=(const LibraryFunctions&) = delete;
  ~LibraryFunctions() { dlerror(); }  // the program must not see our lookup errors

  // Looks for nothing more after the first function that is missing.
  template <typename F>
  void find(F*& function, const char* name) {
    if (!whole_) return;
    void* found = dlsym(handle_, name);
    whole_ = found != nullptr;
    std::memcpy(&function, &found, sizeof function);
  }
  bool whole() const { return whole_; }

 private:
  void* handle_;
  bool whole_;
};

}  // namespace tprof
