// What a library or program that is at hand tells of its addresses: functions from its symbol
// tables, lines and inlined functions from its DWARF.
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
  // `build_id`: in hex, as a trace has it. Of a file that is not there, is another one, or has no
  // build id to tell, nothing is known.
  Object(const std::filesystem::path& file, const std::string& build_id);
  ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  bool known() const { return file_ != nullptr; }
  // Of the call that returns to `offset` from where the object begins in memory: what was inlined,
  // innermost first, then the function. Empty: not known.
  std::vector<Place> places(std::uint64_t offset) const;

 private:
  std::unique_ptr<ElfFile> file_;
};

}  // namespace tprof::symbols
