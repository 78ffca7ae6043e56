// Reads what matters for preloading from an ELF file. Every offset is checked, since the file may
// be damaged.
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
  bool dlsym = false;             // it has its own dlsym
  std::set<std::string> wants;    // undefined nccl*, cuda* and __cuda* symbols
  std::set<std::string> hidden;   // defined, but in .symtab only
  bool kernels = false;           // it has CUDA kernels
  bool nccl_text = false;         // it contains a text of NCCL's, which survives stripping
  std::string function_list;      // only in a libtprof.so (interpose/api/function_list.cpp)
};

// Returns nullopt if it is no ELF file. Throws BadInput if it is damaged or unreadable.
std::optional<Elf> read_elf(const std::filesystem::path& file);

std::string machine_name(std::uint16_t machine);  // "x86-64"

}  // namespace tprof::doctor
