// Names the addresses of a library or program that is at hand: functions from its symbol tables,
// lines and inlined functions from its DWARF.
#pragma once

#include <elfutils/libdw.h>
#include <gelf.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "symbols/frames.h"

namespace tprof::symbols {

// Open as long as this exists.
class Object {
 public:
  // `build_id` is in hex, as a trace has it. Nothing is known if the file is not there, is another
  // one, or has no build id to tell.
  Object(const std::filesystem::path& file, const std::string& build_id);
  ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  bool known() const { return known_; }
  // Returns the places of the call that returns to `offset` from where the object begins in memory:
  // inlined functions, innermost first, then the function. Empty if not known.
  std::vector<Place> places(std::uint64_t offset);

 private:
  struct Function {
    std::uint64_t begin;
    std::uint64_t size;
    const char* name;  // mangled
  };
  std::vector<Function> read_functions() const;

  int fd_ = -1;
  Elf* elf_ = nullptr;
  Dwarf* dwarf_ = nullptr;  // null: there is none
  bool known_ = false;
  std::optional<std::vector<Function>> functions_;  // by address
};

}  // namespace tprof::symbols
