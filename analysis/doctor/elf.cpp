#include "doctor/elf.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "read/error.h"

namespace tprof::doctor {
namespace {

class Image {
 public:
  explicit Image(const std::filesystem::path& file) : file_(file) {
    const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) throw read::BadInput(file, std::strerror(errno));
    struct stat st {};
    fstat(fd, &st);
    size_ = S_ISREG(st.st_mode) ? static_cast<std::size_t>(st.st_size) : 0;
    if (size_ != 0) base_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (size_ != 0 && base_ == MAP_FAILED) throw read::BadInput(file, std::strerror(errno));
  }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  ~Image() {
    if (size_ != 0) munmap(base_, size_);
  }

  std::string_view bytes(std::uint64_t offset, std::uint64_t size) const {
    if (offset > size_ || size > size_ - offset) {
      throw read::BadInput(file_, offset, "expected more of this ELF file: it is cut or damaged");
    }
    return {static_cast<const char*>(base_) + offset, size};
  }
  std::string_view all() const { return size_ == 0 ? std::string_view() : bytes(0, size_); }
  template <typename T>
  T at(std::uint64_t offset) const {
    T value;
    std::memcpy(&value, bytes(offset, sizeof value).data(), sizeof value);
    return value;
  }
  // Returns entry `i` of a table.
  template <typename T>
  T entry(std::uint64_t offset, std::uint64_t i) const {
    return at<T>(offset + i * sizeof(T));  // a sum that wraps is beyond the file or harmless
  }

 private:
  const std::filesystem::path& file_;
  std::size_t size_ = 0;
  void* base_ = nullptr;
};

std::string_view text_at(std::string_view table, std::uint64_t offset) {
  if (offset >= table.size()) return {};
  const std::string_view rest(table.data() + offset, table.size() - offset);
  return {rest.data(), std::min(rest.find('\0'), rest.size())};
}

class Reader {
 public:
  explicit Reader(const Image& image) : image_(image), head_(image.at<Elf64_Ehdr>(0)) {}

  Elf read() {
    elf_.machine = head_.e_machine;
    for (std::uint64_t i = 0; i < head_.e_phnum; ++i) {
      const auto p = image_.entry<Elf64_Phdr>(head_.e_phoff, i);
      if (p.p_type == PT_INTERP)
        elf_.interpreter = text_at(image_.bytes(p.p_offset, p.p_filesz), 0);
    }
    if (head_.e_shoff == 0) return std::move(elf_);
    for (std::uint64_t i = 0; i < head_.e_shnum; ++i) section(at(i));
    return std::move(elf_);
  }

 private:
  Elf64_Shdr at(std::uint64_t i) const { return image_.entry<Elf64_Shdr>(head_.e_shoff, i); }
  std::string_view strings(std::uint64_t section) const {
    if (section >= head_.e_shnum) return {};
    const Elf64_Shdr s = at(section);
    return s.sh_type == SHT_STRTAB ? image_.bytes(s.sh_offset, s.sh_size) : std::string_view();
  }

  void section(const Elf64_Shdr& s) {
    const std::string_view name = text_at(strings(head_.e_shstrndx), s.sh_name);
    elf_.kernels = elf_.kernels || name == ".nv_fatbin" || name == ".nvFatBinSegment";
    switch (s.sh_type) {
      case SHT_DYNAMIC:
        return dynamic(s);
      case SHT_DYNSYM:
      case SHT_SYMTAB:
        return symbols(s, s.sh_type == SHT_DYNSYM);
      case SHT_PROGBITS:
        if (name == ".rodata") {
          elf_.nccl_text =
              image_.bytes(s.sh_offset, s.sh_size).find("NCCL_BUFFSIZE") != std::string_view::npos;
        }
        if (name == "tprof_functions") elf_.function_list = image_.bytes(s.sh_offset, s.sh_size);
        return;
      default:
        return;
    }
  }

  void dynamic(const Elf64_Shdr& s) {
    const std::string_view names = strings(s.sh_link);
    for (std::uint64_t i = 0; i < s.sh_size / sizeof(Elf64_Dyn); ++i) {
      const auto d = image_.entry<Elf64_Dyn>(s.sh_offset, i);
      if (d.d_tag == DT_NULL) break;
      if (d.d_tag == DT_NEEDED) elf_.needed.emplace(text_at(names, d.d_un.d_val));
    }
  }

  void symbols(const Elf64_Shdr& s, bool is_dynamic) {
    const std::string_view names = strings(s.sh_link);
    for (std::uint64_t i = 0; i < s.sh_size / sizeof(Elf64_Sym); ++i) {
      const auto symbol = image_.entry<Elf64_Sym>(s.sh_offset, i);
      const std::string_view name = text_at(names, symbol.st_name);
      elf_.dlsym = elf_.dlsym || (name == "dlsym" && symbol.st_shndx != SHN_UNDEF);
      if (!name.starts_with("nccl") && !name.starts_with("cuda") && !name.starts_with("__cuda")) {
        continue;
      }
      const bool defined = symbol.st_shndx != SHN_UNDEF;
      if (is_dynamic) {
        (defined ? elf_.defines : elf_.wants).emplace(name);
      } else if (defined && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC) {
        elf_.hidden.emplace(name);
      }
    }
  }

  const Image& image_;
  const Elf64_Ehdr head_;
  Elf elf_;
};

}  // namespace

std::optional<Elf> read_elf(const std::filesystem::path& file) {
  const Image image(file);
  if (!image.all().starts_with(ELFMAG)) return std::nullopt;
  const auto ident = image.bytes(0, EI_NIDENT);
  if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB) {
    // This is enough: libtprof.so is neither 32-bit nor big-endian.
    Elf other;
    other.is_64_bit = ident[EI_CLASS] == ELFCLASS64;
    other.machine = image.at<std::uint16_t>(EI_NIDENT + sizeof(std::uint16_t));
    return other;
  }
  return Reader(image).read();
}

std::string machine_name(std::uint16_t machine) {
  if (machine == EM_X86_64) return "x86-64";
  return machine == EM_AARCH64 ? "aarch64" : fmt::format("machine {}", machine);
}

}  // namespace tprof::doctor
