// What an ELF file says of itself, as far as preloading is concerned. The file may be anything:
// every offset is checked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tprof::doctor {

struct Elf {
  bool is_64_bit = true;
  std::uint16_t machine = 0;  // EM_X86_64, ...
  std::string interpreter;    // path of its dynamic loader, empty: none
  std::set<std::string> needed;
  std::set<std::string> defines;  // nccl* and cuda* functions in its dynamic symbols
  std::set<std::string> wants;    // of those, and __cuda*, the undefined ones
  std::set<std::string> hidden;   // defined, but in .symtab only
  bool kernels = false;           // CUDA's are in it
  bool nccl_text = false;         // a text of NCCL's is: what a stripped file still tells
  std::string function_list;      // of a libtprof.so: interpose/api/function_list.cpp
};

// Nothing where the file is no ELF file. Throws BadInput where it is a damaged one, or unreadable.
std::optional<Elf> read_elf(const std::filesystem::path& file);

std::string machine_name(std::uint16_t machine);  // "x86-64"

}  // namespace tprof::doctor
