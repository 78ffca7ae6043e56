#include "doctor/elf.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

#include "doctor/examine.h"
#include "interpose/base/not_copied.h"
#include "read/error.h"

namespace tprof::doctor {

namespace {

// A file that libelf reads.
struct Image : NotCopied {
  explicit Image(const std::filesystem::path& of)
      : file(of), fd(open(of.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd < 0) throw read::BadInput(file, std::strerror(errno));
  }
  ~Image() {
    elf_end(elf);
    close(fd);
  }

  // Throws if libelf returned null.
  template <typename T>
  T* needed(T* there) const {
    if (there != nullptr) return there;
    const off_t size = lseek(fd, 0, SEEK_END);
    throw read::BadInput(file, static_cast<std::uint64_t>(size),
                         "this ELF file is truncated or damaged");
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

constexpr int kMaxHops = 8;

// Programs that run the command after their own arguments; each has spaces around it.
constexpr std::string_view kRunHere =
    " env nice nohup time timeout numactl taskset stdbuf chrt ionice setsid strace setarch "
    "prlimit ";
constexpr std::string_view kRunOnOtherHosts =
    " srun mpirun mpiexec prun jsrun aprun orterun ssh pdsh ";
constexpr std::string_view kRunInContainer =
    " docker podman nerdctl singularity apptainer enroot ch-run shifter crun runc ";

Runs where_runs(const std::vector<std::string>& command, const std::string& program) {
  const auto in = [word = " " + program + " "](std::string_view list) {
    return list.find(word) != std::string_view::npos;
  };
  const bool pyxis = program == "srun" && std::ranges::any_of(command, [](const std::string& word) {
                       return word.starts_with("--container-image");
                     });
  if (pyxis || in(kRunInContainer)) return Runs::in_container;
  if (in(kRunOnOtherHosts)) return Runs::on_other_hosts;
  return in(kRunHere) ? Runs::here : Runs::nothing;
}

bool executable(const fs::path& file) {
  std::error_code error;
  return fs::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0;
}

// Returns the words after "#!"; the shell if there are none.
std::vector<std::string> interpreter_of(const fs::path& file) {
  constexpr std::size_t kKernelTakes = 258;
  std::string line(kKernelTakes, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(line.data(), kKernelTakes);
  line.resize(static_cast<std::size_t>(in.gcount()));
  std::vector<std::string> command;
  if (line.starts_with("#!")) {
    std::istringstream words(line.substr(2, line.find('\n') - 2));
    for (std::string word; words >> word;) command.push_back(word);
  }
  return command.empty() ? std::vector<std::string>{"/bin/sh"} : command;
}

// Returns the words from the first argument on that is a program; options and their values are not.
std::vector<std::string> what_it_runs(const std::vector<std::string>& command) {
  const auto first = std::find_if(command.begin() + 1, command.end(), [](const std::string& word) {
    return !word.starts_with('-') && word.find('=') == std::string::npos && find_program(word);
  });
  return {first, command.end()};
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
  // No more is needed: libtprof.so is neither 32-bit nor big-endian.
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

namespace fs = std::filesystem;

std::optional<fs::path> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return executable(name) ? std::optional<fs::path>(name) : std::nullopt;
  }
  const char* set = std::getenv("PATH");
  std::istringstream folders(set == nullptr ? "/bin:/usr/bin" : set);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path file = fs::path(folder.empty() ? "." : folder) / name;
    if (!name.empty() && executable(file)) return file;
  }
  return std::nullopt;
}

std::vector<Program> programs_of(const std::vector<std::string>& command) {
  std::vector<Program> programs;
  std::vector<std::string> words = command;
  for (int hop = 0; hop < kMaxHops && !words.empty(); ++hop) {
    const auto path = find_program(words[0]);
    if (!path) {
      if (programs.empty()) throw read::BadInput(words[0] + ": no such program in PATH");
      programs.push_back({.path = words[0], .missing = true});
      break;
    }
    const Program& p = programs.emplace_back(
        Program{*path, read_elf(*path), where_runs(command, path->filename().string())});
    if (!p.elf) {
      std::vector<std::string> next = interpreter_of(*path);
      next.insert(next.end(), words.begin(), words.end());
      words = std::move(next);
    } else if (p.runs == Runs::nothing || p.runs == Runs::in_container) {
      break;
    } else {
      words = what_it_runs(words);
    }
  }
  return programs;
}

}  // namespace tprof::doctor
