#include "interpose/marks/objects.h"

#include <algorithm>
#include <cstring>

#include "interpose/base/loaded_objects.h"
#include "interpose/base/lock.h"
#include "interpose/record/tables.h"

namespace tprof::sites {
namespace {

// The loader's data of an object stays valid as long as calls are to return to it.
struct Found {
  std::uintptr_t begin = 0;
  const char* name = nullptr;
  const std::uint8_t* build_id = nullptr;
  std::size_t build_id_size = 0;
};

struct Note {
  std::uint32_t name_size, size, type;
};

void find_build_id(const std::uint8_t* at, std::size_t size, Found& found) {
  const auto padded = [](std::size_t n) { return (n + 3) & ~std::size_t{3}; };
  for (Note note{}; size >= sizeof note;) {
    std::memcpy(&note, at, sizeof note);
    at += sizeof note;
    size -= sizeof note;
    const std::size_t body = padded(note.name_size) + padded(note.size);
    if (body > size) return;
    if (note.type == NT_GNU_BUILD_ID && note.name_size == 4 && std::memcmp(at, "GNU", 4) == 0) {
      found.build_id = at + 4;
      found.build_id_size = note.size;
      return;
    }
    at += body;
    size -= body;
  }
}

Found object_of(const dl_phdr_info& info) {
  constexpr std::uintptr_t kPage = 4096;
  Found found{range_of(info).begin & ~(kPage - 1), info.dlpi_name};
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const auto& p = info.dlpi_phdr[i];
    const std::uintptr_t begin = info.dlpi_addr + p.p_vaddr;
    if (p.p_type != PT_NOTE) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader tells addresses as numbers
    find_build_id(reinterpret_cast<const std::uint8_t*>(begin), p.p_memsz, found);
  }
  return found;
}

bool same(const SiteObject& a, const SiteObject& b) {
  return bounded_text(a.path) == bounded_text(b.path) && a.build_id_size == b.build_id_size &&
         std::memcmp(a.build_id, b.build_id, sizeof a.build_id) == 0;
}

Lock g_objects_lock{LockOrder::site_objects};

std::uint32_t number_of(const Found& found) {
  SiteObject object{};
  char program[sizeof object.path];
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader tells addresses as numbers
  const auto* begin = reinterpret_cast<const void*>(found.begin);
  const std::string_view name = found.name;
  copy_text(object.path, name.empty() ? program_path(begin, program) : name);
  if (object.path[0] == '\0') return 0;
  if (found.build_id_size <= sizeof object.build_id && found.build_id_size != 0) {
    std::memcpy(object.build_id, found.build_id, found.build_id_size);
    object.build_id_size = static_cast<std::uint8_t>(found.build_id_size);
  }
  const LockGuard guard(g_objects_lock);
  Table& table = session::mapping().head().site_objects;
  const View view = session::mapping().view();
  for (std::uint32_t i = View::entries(table); i > 0; --i) {
    const SiteObject* known = view.site_object(i);
    if (known != nullptr && same(*known, object)) return i;
  }
  return tables::append(table, object, [](std::uint32_t) {});
}

}  // namespace

void locate(const std::uintptr_t* addresses, std::size_t n, SiteAddress* to) {
  constexpr std::size_t kMost = kMaxNativeFrames + 1;
  n = std::min(n, kMost);
  Found found[kMost]{};
  each_loaded_object([&](const dl_phdr_info& object) {
    for (std::size_t i = 0; i < n; ++i) {
      // The call lies before its return address, which may belong to another object.
      const bool here = found[i].name == nullptr && holds(object, addresses[i] - 1);
      if (here) found[i] = object_of(object);
    }
    return false;
  });
  for (std::size_t i = 0; i < n; ++i) {
    to[i] = {};
    if (found[i].name == nullptr) continue;
    const std::uint32_t number = number_of(found[i]);
    if (number != 0) to[i] = site_address(number, addresses[i] - found[i].begin);
  }
}

}  // namespace tprof::sites
