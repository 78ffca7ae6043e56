// Names the addresses of a library or program that is at hand: functions from its symbol tables,
// lines and inlined functions from its DWARF.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace tprof::symbols {

class ElfFile;

struct Place {
  std::string function;  // without its arguments; empty: not known
  std::string file;      // as the compiler was given it; empty: not known
  std::int64_t line = 0;
};

class Object {
 public:
  // `build_id` is in hex, as a trace has it. Nothing is known if the file is not there, is another
  // one, or has no build id to tell.
  Object(const std::filesystem::path& file, const std::string& build_id);
  ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  bool known() const { return file_ != nullptr; }
  // Returns the places of the call that returns to `offset` from where the object begins in memory:
  // inlined functions, innermost first, then the function. Empty if not known.
  std::vector<Place> places(std::uint64_t offset) const;

 private:
  std::unique_ptr<ElfFile> file_;
};

}  // namespace tprof::symbols
