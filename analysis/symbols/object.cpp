#include "symbols/object.h"

#include <dwarf.h>

#include <cstdlib>
#include <map>

#include "symbols/elf_file.h"
#include "symbols/readable.h"

namespace tprof::symbols {
namespace {

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

struct Scopes {
  Dwarf_Die* die = nullptr;
  int count = 0;

  Scopes() = default;
  Scopes(const Scopes&) = delete;
  Scopes& operator=(const Scopes&) = delete;
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

}  // namespace

Object::Object(const std::filesystem::path& file, const std::string& build_id) {
  if (!file.is_absolute() || build_id.empty()) return;
  auto opened = std::make_unique<ElfFile>(file);
  if (opened->build_id() == build_id) file_ = std::move(opened);
}

Object::~Object() = default;

std::vector<Place> Object::places(std::uint64_t offset) const {
  if (!known()) return {};
  const std::uint64_t call = file_->begin() + offset - 1;
  std::vector<Place> places = by_dwarf(file_->dwarf(), call);
  const char* function = file_->function(call);
  if (function == nullptr) return places;
  if (places.empty()) places.emplace_back();
  places.back().function = readable(function);
  return places;
}

}  // namespace tprof::symbols
