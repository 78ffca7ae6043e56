// A file as libelf and libdw see it, open as long as this object exists.
#pragma once

#include <elfutils/libdw.h>
#include <gelf.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tprof::symbols {

class ElfFile {
 public:
  explicit ElfFile(const std::filesystem::path& file);
  ~ElfFile();
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  std::string build_id() const;  // hex; empty: none, or no ELF file
  // Returns the address, as the file has it, of what is at its beginning in memory.
  std::uint64_t begin() const;
  // Returns the mangled name of the function that holds the address, or null if none is known to.
  const char* function(std::uint64_t address);
  Dwarf* dwarf() const { return dwarf_; }  // null: there is none

 private:
  struct Function {
    std::uint64_t begin;
    std::uint64_t size;
    const char* name;
  };
  void read_functions();

  int fd_ = -1;
  Elf* elf_ = nullptr;
  Dwarf* dwarf_ = nullptr;
  bool functions_read_ = false;
  std::vector<Function> functions_;  // by address
};

}  // namespace tprof::symbols
