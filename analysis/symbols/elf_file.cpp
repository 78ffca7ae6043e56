#include "symbols/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace tprof::symbols {
namespace {

// A trace may name anything, so this does not wait for a pipe.
int open_regular(const std::filesystem::path& file) {
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat st {};
  if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))) return fd;
  close(fd);
  return -1;
}

}  // namespace

ElfFile::ElfFile(const std::filesystem::path& file) : fd_(open_regular(file)) {
  if (fd_ < 0) return;
  elf_version(EV_CURRENT);
  elf_ = elf_begin(fd_, ELF_C_READ_MMAP, nullptr);
  if (elf_kind(elf_) == ELF_K_ELF) dwarf_ = dwarf_begin_elf(elf_, DWARF_C_READ, nullptr);
}

ElfFile::~ElfFile() {
  dwarf_end(dwarf_);
  elf_end(elf_);
  if (fd_ >= 0) close(fd_);
}

std::string ElfFile::build_id() const {
  const void* id = nullptr;
  const ssize_t size = elf_kind(elf_) == ELF_K_ELF ? dwelf_elf_gnu_build_id(elf_, &id) : 0;
  std::string hex;
  for (ssize_t i = 0; i < size; ++i) {
    hex += fmt::format("{:02x}", static_cast<const std::uint8_t*>(id)[i]);
  }
  return hex;
}

std::uint64_t ElfFile::begin() const {
  constexpr std::uint64_t kPage = 4096;
  std::size_t n = 0;
  std::uint64_t begin = UINT64_MAX;
  if (elf_getphdrnum(elf_, &n) != 0) return 0;
  for (std::size_t i = 0; i < n; ++i) {
    GElf_Phdr p;
    if (gelf_getphdr(elf_, static_cast<int>(i), &p) == nullptr || p.p_type != PT_LOAD) continue;
    begin = std::min(begin, p.p_vaddr & ~(kPage - 1));
  }
  return begin == UINT64_MAX ? 0 : begin;
}

// Prefers .symtab, which has all that .dynsym has.
void ElfFile::read_functions() {
  functions_read_ = true;
  Elf_Scn* found = nullptr;
  GElf_Shdr table{};
  for (Elf_Scn* s = nullptr; (s = elf_nextscn(elf_, s)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(s, &header) == nullptr) continue;
    const bool full = header.sh_type == SHT_SYMTAB;
    if (!full && (header.sh_type != SHT_DYNSYM || found != nullptr)) continue;
    found = s;
    table = header;
    if (full) break;
  }
  Elf_Data* data = found == nullptr ? nullptr : elf_getdata(found, nullptr);
  if (data == nullptr || table.sh_entsize == 0) return;
  for (std::size_t i = 0; i < table.sh_size / table.sh_entsize; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
    const auto type = GELF_ST_TYPE(symbol.st_info);
    const bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
    if (!function || symbol.st_shndx == SHN_UNDEF || symbol.st_size == 0) continue;
    const char* name = elf_strptr(elf_, table.sh_link, symbol.st_name);
    if (name != nullptr) functions_.push_back({symbol.st_value, symbol.st_size, name});
  }
  std::ranges::stable_sort(functions_, {}, &Function::begin);
}

const char* ElfFile::function(std::uint64_t address) {
  if (!functions_read_) read_functions();
  auto next = std::ranges::upper_bound(functions_, address, {}, &Function::begin);
  if (next == functions_.begin()) return nullptr;
  const Function& f = *--next;
  return address - f.begin < f.size ? f.name : nullptr;
}

}  // namespace tprof::symbols
