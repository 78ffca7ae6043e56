#pragma once

#include <dlfcn.h>

#include <cstring>

namespace tprof {

// Functions of a library that was opened, or not, found one after the other.
class LibraryFunctions {
 public:
  explicit LibraryFunctions(void* handle) : handle_(handle), whole_(handle != nullptr) {}
  LibraryFunctions(const LibraryFunctions&) = delete;
  LibraryFunctions& operator=(const LibraryFunctions&) = delete;
  ~LibraryFunctions() { dlerror(); }  // what was not found is no error of the program's

  // Behind one that is not there nothing is looked for.
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
