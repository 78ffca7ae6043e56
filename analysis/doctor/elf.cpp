#include "doctor/elf.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "read/error.h"

namespace tprof::doctor {
namespace {

// A file that libelf reads.
struct Image {
  explicit Image(const std::filesystem::path& of)
      : file(of), fd(open(of.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd < 0) throw read::BadInput(file, std::strerror(errno));
  }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  ~Image() {
    elf_end(elf);
    close(fd);
  }

  // Throws if libelf has nothing there.
  template <typename T>
  T* needed(T* there) const {
    if (there != nullptr) return there;
    const off_t size = lseek(fd, 0, SEEK_END);
    throw read::BadInput(file, static_cast<std::uint64_t>(size),
                         "expected more of this ELF file: it is cut or damaged");
  }
  std::string_view text(std::size_t strings, std::size_t offset) const {
    const char* text = elf_strptr(elf, strings, offset);
    return text == nullptr ? std::string_view() : text;
  }
  std::string_view bytes(std::uint64_t offset, std::uint64_t size) const {
    std::size_t all = 0;
    const char* begin = needed(elf_rawfile(elf, &all));
    const bool inside = offset <= all && size <= all - offset;
    return {needed(inside ? begin + offset : nullptr), size};
  }

  const std::filesystem::path& file;
  const int fd;
  ::Elf* elf = nullptr;
};

void add_symbol(const GElf_Sym& symbol, std::string_view name, bool is_dynamic, Elf& to) {
  const bool defined = symbol.st_shndx != SHN_UNDEF;
  to.dlsym = to.dlsym || (name == "dlsym" && defined);
  if (!name.starts_with("nccl") && !name.starts_with("cuda") && !name.starts_with("__cuda")) return;
  if (is_dynamic) {
    (defined ? to.defines : to.wants).emplace(name);
  } else if (defined && GELF_ST_TYPE(symbol.st_info) == STT_FUNC) {
    to.hidden.emplace(name);
  }
}

void add_section(const Image& image, Elf_Scn* section, std::size_t names, Elf& to) {
  GElf_Shdr head;
  image.needed(gelf_getshdr(section, &head));
  const std::string_view name = image.text(names, head.sh_name);
  to.kernels = to.kernels || name == ".nv_fatbin" || name == ".nvFatBinSegment";
  if (head.sh_type == SHT_PROGBITS && name == ".rodata") {
    to.nccl_text =
        image.bytes(head.sh_offset, head.sh_size).find("NCCL_BUFFSIZE") != std::string_view::npos;
  }
  if (head.sh_type == SHT_PROGBITS && name == "tprof_functions") {
    to.function_list = image.bytes(head.sh_offset, head.sh_size);
  }
  const bool symbols = head.sh_type == SHT_DYNSYM || head.sh_type == SHT_SYMTAB;
  if ((!symbols && head.sh_type != SHT_DYNAMIC) || head.sh_size == 0) return;
  Elf_Data* data = image.needed(elf_getdata(section, nullptr));
  GElf_Sym symbol;
  for (int i = 0; symbols && gelf_getsym(data, i, &symbol) != nullptr; ++i) {
    const std::string_view of = image.text(head.sh_link, symbol.st_name);
    add_symbol(symbol, of, head.sh_type == SHT_DYNSYM, to);
  }
  GElf_Dyn entry;
  for (int i = 0; !symbols && gelf_getdyn(data, i, &entry) != nullptr; ++i) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_NEEDED) to.needed.emplace(image.text(head.sh_link, entry.d_un.d_val));
  }
}

}  // namespace

std::optional<Elf> read_elf(const std::filesystem::path& file) {
  Image image(file);
  Elf found;
  char begin[EI_NIDENT + 2 * sizeof found.machine];
  const ssize_t size = pread(image.fd, begin, sizeof begin, 0);
  if (size < SELFMAG || std::memcmp(begin, ELFMAG, SELFMAG) != 0) return std::nullopt;
  image.needed(size == sizeof begin ? &size : nullptr);
  std::memcpy(&found.machine, begin + EI_NIDENT + sizeof found.machine, sizeof found.machine);
  found.is_64_bit = begin[EI_CLASS] == ELFCLASS64;
  // This is enough: libtprof.so is neither 32-bit nor big-endian.
  if (!found.is_64_bit || begin[EI_DATA] != ELFDATA2LSB) return found;
  elf_version(EV_CURRENT);
  image.elf = image.needed(elf_begin(image.fd, ELF_C_READ_MMAP, nullptr));
  GElf_Phdr p;
  for (int i = 0; gelf_getphdr(image.elf, i, &p) != nullptr; ++i) {
    if (p.p_type != PT_INTERP) continue;
    const std::string_view path = image.bytes(p.p_offset, p.p_filesz);
    found.interpreter = path.substr(0, path.find('\0'));
  }
  GElf_Ehdr head;
  image.needed(gelf_getehdr(image.elf, &head));
  std::size_t names = 0;
  const bool known = elf_getshdrstrndx(image.elf, &names) == 0;
  image.needed(head.e_shoff == 0 || (known && elf_getscn(image.elf, names) != nullptr) ? &head
                                                                                       : nullptr);
  for (Elf_Scn* s = nullptr; (s = elf_nextscn(image.elf, s)) != nullptr;) {
    add_section(image, s, names, found);
  }
  return found;
}

std::string machine_name(std::uint16_t machine) {
  if (machine == EM_X86_64) return "x86-64";
  return machine == EM_AARCH64 ? "aarch64" : fmt::format("machine {}", machine);
}

}  // namespace tprof::doctor
