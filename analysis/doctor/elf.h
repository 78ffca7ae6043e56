// Reads what an ELF file says of itself, as far as preloading is concerned. The file may be
// anything, so every offset is checked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>

namespace tprof::doctor {

struct Elf {
  bool is_64_bit = true;
  std::uint16_t machine = 0;  // EM_X86_64, ...
  std::string interpreter;    // path of its dynamic loader, empty: none
  std::set<std::string> needed;
  std::set<std::string> defines;  // nccl* and cuda* functions in its dynamic symbols
  bool dlsym = false;             // it has a dlsym of its own
  std::set<std::string> wants;    // undefined nccl*, cuda* and __cuda* names in them
  std::set<std::string> hidden;   // defined, but in .symtab only
  bool kernels = false;           // it has CUDA kernels
  bool nccl_text = false;         // a text of NCCL's is in it, which a stripped file keeps
  std::string function_list;      // of a libtprof.so (interpose/api/function_list.cpp)
};

// Returns nullopt if the file is no ELF file. Throws BadInput if it is damaged or unreadable.
std::optional<Elf> read_elf(const std::filesystem::path& file);

std::string machine_name(std::uint16_t machine);  // "x86-64"

}  // namespace tprof::doctor
