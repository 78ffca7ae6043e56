#include "symbols/frames.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "interpose/base/not_copied.h"

namespace tprof::symbols {

namespace {

// Names the addresses of a library or program that is at hand: functions from its symbol tables,
// lines and inlined functions from its DWARF. Open as long as this exists.
class Object : NotCopied {
 public:
  // `build_id` is in hex, as a trace has it. Nothing is known if the file is not there, is another
  // one, or has no build id to tell.
  Object(const std::filesystem::path& file, const std::string& build_id);
  ~Object();

  bool known() const { return known_; }
  // Returns the places of the call that returns to `offset` from where the object begins in memory:
  // inlined functions, innermost first, then the function. Empty if not known.
  std::vector<Place> places(std::uint64_t offset);

 private:
  struct Function {
    std::uint64_t begin;
    std::uint64_t size;
    const char* name;  // mangled
  };
  std::vector<Function> read_functions() const;

  int fd_ = -1;
  Elf* elf_ = nullptr;
  Dwarf* dwarf_ = nullptr;  // null: there is none
  bool known_ = false;
  std::optional<std::vector<Function>> functions_;  // by address
};

constexpr std::size_t kPaths = 16;  // per object

// A trace may name anything, so this does not wait for a pipe.
int open_regular(const std::filesystem::path& file) {
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat st {};
  if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))) return fd;
  close(fd);
  return -1;
}

// In hex; empty: none, or no ELF file.
std::string build_id_of(Elf* elf) {
  const void* id = nullptr;
  const ssize_t size = elf_kind(elf) == ELF_K_ELF ? dwelf_elf_gnu_build_id(elf, &id) : 0;
  std::string hex;
  for (ssize_t i = 0; i < size; ++i) {
    hex += fmt::format("{:02x}", static_cast<const std::uint8_t*>(id)[i]);
  }
  return hex;
}

// Returns the address, as the file has it, of what is at its beginning in memory.
std::uint64_t begin_of(Elf* elf) {
  constexpr std::uint64_t kPage = 4096;
  std::size_t n = 0;
  std::uint64_t begin = UINT64_MAX;
  if (elf_getphdrnum(elf, &n) != 0) return 0;
  for (std::size_t i = 0; i < n; ++i) {
    GElf_Phdr p;
    if (gelf_getphdr(elf, static_cast<int>(i), &p) == nullptr || p.p_type != PT_LOAD) continue;
    begin = std::min(begin, p.p_vaddr & ~(kPage - 1));
  }
  return begin == UINT64_MAX ? 0 : begin;
}

std::string text(const char* s) {
  return s == nullptr ? std::string() : std::string(s);
}

// Returns the compilation unit that holds an address. Not all compilers write the table that tells.
Dwarf_Die* unit_of(Dwarf* dwarf, std::uint64_t address, Dwarf_Die& unit) {
  if (dwarf_addrdie(dwarf, address, &unit) != nullptr) return &unit;
  Dwarf_Off next = 0;
  std::size_t header = 0;
  for (Dwarf_Off at = 0; dwarf_nextcu(dwarf, at, &next, &header, nullptr, nullptr, nullptr) == 0;
       at = next) {
    if (dwarf_offdie(dwarf, at + header, &unit) != nullptr && dwarf_haspc(&unit, address) == 1) {
      return &unit;
    }
  }
  return nullptr;
}

std::string name_of(Dwarf_Die* function) {
  Dwarf_Attribute attribute;
  const char* linked =
      dwarf_formstring(dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute));
  return linked != nullptr ? readable(linked) : text(dwarf_diename(function));
}

Dwarf_Word number(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  dwarf_formudata(dwarf_attr(die, name, &attribute), &value);
  return value;
}

struct Scopes : NotCopied {
  Dwarf_Die* die = nullptr;
  int count = 0;

  ~Scopes() { std::free(die); }
};

// Finds places as eu-addr2line does. The caller of an inlined function gets the place of that call.
std::vector<Place> by_dwarf(Dwarf* dwarf, std::uint64_t address) {
  Dwarf_Die unit_die;
  Dwarf_Die* unit = dwarf == nullptr ? nullptr : unit_of(dwarf, address, unit_die);
  Dwarf_Line* line = unit == nullptr ? nullptr : dwarf_getsrc_die(unit, address);
  if (line == nullptr) return {};
  std::vector<Place> places(1);
  int number_of_line = 0;
  dwarf_lineno(line, &number_of_line);
  places[0].file = text(dwarf_linesrc(line, nullptr, nullptr));
  places[0].line = number_of_line;
  Scopes around;
  Scopes scopes;
  around.count = dwarf_getscopes(unit, address, &around.die);
  if (around.count > 0) scopes.count = dwarf_getscopes_die(around.die, &scopes.die);
  Dwarf_Files* files = nullptr;
  std::size_t file_count = 0;
  dwarf_getsrcfiles(unit, &files, &file_count);
  for (int i = 0; i < scopes.count; ++i) {
    Dwarf_Die* scope = scopes.die + i;
    const int tag = dwarf_tag(scope);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
    places.back().function = name_of(scope);
    if (tag == DW_TAG_subprogram) break;
    Place caller;
    caller.file = text(dwarf_filesrc(files, number(scope, DW_AT_call_file), nullptr, nullptr));
    caller.line = static_cast<std::int64_t>(number(scope, DW_AT_call_line));
    places.push_back(std::move(caller));
  }
  return places;
}

// Parentheses that are no arguments.
constexpr std::string_view kOthers[] = {"(anonymous namespace)", "operator()"};

std::size_t arguments_at(std::string_view name) {
  int templates = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    bool skipped = false;
    for (const std::string_view other : kOthers) {
      if (name.substr(i).starts_with(other)) {
        i += other.size() - 1;
        skipped = true;
        break;
      }
    }
    if (skipped) continue;
    if (name.substr(i).starts_with("operator")) {  // an operator may be <, >> or ->
      i = std::min(name.find_first_of("( ", i), name.size()) - 1;
    } else if (name[i] == '<') {
      ++templates;
    } else if (name[i] == '>') {
      --templates;
    } else if (name[i] == '(' && templates == 0) {
      return i;
    }
  }
  return name.size();
}

}  // namespace

void Names::may_be_at(const std::string& path, const std::string& object,
                      const std::string& build_id) {
  auto& paths = paths_[{object, build_id}];
  if (!build_id.empty() && paths.size() < kPaths) paths.insert(path);
}

void Names::add(const Names& others) {
  for (const auto& [object, paths] : others.paths_) {
    for (const std::string& path : paths) may_be_at(path, object.first, object.second);
  }
}

// Frames are in the order of their objects, so each object is opened once, and alone.
void Names::find(const std::set<Frame>& frames) {
  std::unique_ptr<Object> object;
  std::pair<std::string, std::string> opened;
  for (const Frame& frame : frames) {
    const std::pair key(frame.object, frame.build_id);
    if (object == nullptr || key != opened) {
      opened = key;
      object.reset();
      for (const std::string& path : paths_[key]) {
        object = std::make_unique<Object>(path, frame.build_id);
        if (object->known()) break;
      }
    }
    if (object != nullptr && object->known()) places_[frame] = object->places(frame.offset);
  }
}

const std::vector<Place>& Names::of(const Frame& frame) const {
  static const std::vector<Place> kNone;
  const auto found = places_.find(frame);
  return found == places_.end() ? kNone : found->second;
}

Object::Object(const std::filesystem::path& file, const std::string& build_id) {
  if (!file.is_absolute() || build_id.empty() || (fd_ = open_regular(file)) < 0) return;
  elf_version(EV_CURRENT);
  elf_ = elf_begin(fd_, ELF_C_READ_MMAP, nullptr);
  known_ = build_id_of(elf_) == build_id;
  if (known_) dwarf_ = dwarf_begin_elf(elf_, DWARF_C_READ, nullptr);
}

Object::~Object() {
  dwarf_end(dwarf_);
  elf_end(elf_);
  if (fd_ >= 0) close(fd_);
}

// Prefers .symtab, which has all that .dynsym has.
std::vector<Object::Function> Object::read_functions() const {
  std::vector<Function> functions;
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
  if (data == nullptr || table.sh_entsize == 0) return functions;
  for (std::size_t i = 0; i < table.sh_size / table.sh_entsize; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
    const auto type = GELF_ST_TYPE(symbol.st_info);
    const bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
    if (!function || symbol.st_shndx == SHN_UNDEF || symbol.st_size == 0) continue;
    const char* name = elf_strptr(elf_, table.sh_link, symbol.st_name);
    if (name != nullptr) functions.push_back({symbol.st_value, symbol.st_size, name});
  }
  std::ranges::stable_sort(functions, {}, &Function::begin);
  return functions;
}

std::vector<Place> Object::places(std::uint64_t offset) {
  if (!known()) return {};
  const std::uint64_t call = begin_of(elf_) + offset - 1;
  std::vector<Place> places = by_dwarf(dwarf_, call);
  if (!functions_) functions_ = read_functions();
  const auto next = std::ranges::upper_bound(*functions_, call, {}, &Function::begin);
  const auto f = next == functions_->begin() ? functions_->end() : std::prev(next);
  if (f == functions_->end() || call - f->begin >= f->size) return places;
  if (places.empty()) places.emplace_back();
  places.back().function = readable(f->name);
  return places;
}

std::string readable(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol;  // "i" would be taken for the type
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  if (status != 0) return symbol;
  const std::string_view whole = name.get();
  return std::string(whole.substr(0, arguments_at(whole)));
}

}  // namespace tprof::symbols
