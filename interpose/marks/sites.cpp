#include "interpose/marks/sites.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "interpose/base/complain.h"
#include "interpose/base/hash.h"
#include "interpose/base/held_signals.h"
#include "interpose/base/loaded_objects.h"
#include "interpose/base/lock.h"
#include "interpose/base/shared_map.h"
#include "interpose/format/sites.h"
#include "interpose/marks/python.h"
#include "interpose/marks/walk.h"
#include "interpose/record/tables.h"

namespace tprof::sites {
namespace {

Lock g_lock{LockOrder::sites};  // for adding to the tables

// The loader's data of an object is valid as long as calls will return to it.
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
  const LockGuard guard(g_lock);
  Table& table = session::mapping().head().site_objects;
  const View view = session::mapping().view();
  for (std::uint32_t i = View::entries(table); i > 0; --i) {
    const SiteObject* known = view.site_object(i);
    if (known != nullptr && same(*known, object)) return i;
  }
  return tables::append(table, object);
}

// Finds the objects of return addresses. Takes the lock of the loader's list, and the tables' lock.
void locate(const std::uintptr_t* addresses, std::size_t n, SiteAddress* to) {
  constexpr std::size_t kMost = kMaxNativeFrames + 1;
  n = std::min(n, kMost);
  Found found[kMost]{};
  each_loaded_object([&](const dl_phdr_info& object) {
    for (std::size_t i = 0; i < n; ++i) {
      // The call is before its return address, which may belong to another object.
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

constexpr std::uint32_t kMostSites = 64 * kChunkEntries;  // 1 MiB for each 256

bool g_native = false;
bool g_python = false;

// Maps a site's key to its number.
constinit SharedMap<std::uint16_t> g_sites{LockOrder::handles};

// The frames that identify a call's site.
struct Seen {
  const void* caller;
  python::Frame python[kMaxSiteFrames];
  std::size_t python_frames;
  std::uintptr_t address[kMaxNativeFrames];
  native::Stack stack;
};

std::uint64_t key_of(const Seen& seen) {
  std::uint64_t key = g_native ? mix64(reinterpret_cast<std::uintptr_t>(seen.caller)) : 1;
  for (std::size_t i = 0; i < seen.stack.frames; ++i) {
    key = (key ^ seen.address[i]) * 0x9e3779b97f4a7c15ULL;
    key ^= key >> 32;
  }
  for (std::size_t i = 0; i < seen.python_frames; ++i) {
    key = mix64(key ^ python::identity(seen.python[i]));
  }
  return std::max<std::uint64_t>(key, 2);  // the smallest key of a SharedMap
}

void describe_native(const Seen& seen, Site& site) {
  std::uintptr_t address[kMaxNativeFrames + 1] = {reinterpret_cast<std::uintptr_t>(seen.caller)};
  SiteAddress at[kMaxNativeFrames + 1] = {};
  std::copy_n(seen.address, seen.stack.frames, address + 1);
  locate(address, seen.stack.frames + 1, at);
  site.frames_cut = seen.stack.cut;
  for (; site.frames < seen.stack.frames; ++site.frames) {
    site.frame[site.frames] = at[site.frames + 1];
    if (site.frame[site.frames].object() != 0) continue;
    site.frames_cut = true;  // code generated at run time
    break;
  }
  site.caller = at[0];
  const auto* call = static_cast<const char*>(seen.caller) - 1;
  Dl_info where{};
  if (dladdr(call, &where) != 0 && where.dli_sname != nullptr)
    copy_text(site.symbol, where.dli_sname);
}

std::uint16_t add(std::uint64_t key, const Seen& seen) {
  const HeldSignals held_signals;
  const KeepErrno keep_errno;
  auto* site = make_in_own_memory<Site>();  // the thread's stack may be small
  if (site == nullptr) return 0;
  site->key = key;
  if (g_native) describe_native(seen, *site);
  FixedText text(site->python);
  for (std::size_t i = 0; i < seen.python_frames; ++i) {
    if (!python::describe(seen.python[i], text, sizeof site->python - 1)) break;
  }
  std::uint16_t number = 0;
  {
    const LockGuard guard(g_lock);
    if (!g_sites.find(key, number)) {  // no other thread was faster
      number = static_cast<std::uint16_t>(
          tables::append(session::mapping().head().sites, *site, kMostSites));
      if (number != 0)
        g_sites.insert(key, number);  // 0: the table is full, and each call tries again
    }
  }
  give_back_memory(site, sizeof *site);
  return number;
}

// Constantly changing stacks (a recursion) would leave no room for other places. Beyond this many
// sites, stacks are left out.
constexpr std::uint32_t kPlacesWithStacks = 3 * (kMostSites / 4);

[[gnu::noinline]] std::uint16_t new_site(Seen& seen) {
  if (g_native && native::forget_unloaded()) {
    seen.stack = native::walk(seen.address, kMaxNativeFrames);
  }
  if (View::entries(session::mapping().head().sites) >= kPlacesWithStacks)
    seen.stack = {0, g_native};
  std::uint16_t site = 0;
  const std::uint64_t key = key_of(seen);
  return g_sites.find(key, site) ? site : add(key, seen);
}

}  // namespace

std::uint16_t site_of(const void* caller) {
  Seen seen;
  seen.caller = caller;
  seen.python_frames = g_python ? python::frames(seen.python, kMaxSiteFrames) : 0;
  if (g_native) seen.stack = native::walk(seen.address, kMaxNativeFrames);
  if (seen.python_frames == 0 && !g_native) return 0;
  std::uint16_t site = 0;
  return g_sites.find(key_of(seen), site) ? site : new_site(seen);
}

void begin(CallSite what) {
  g_native = what == CallSite::native || what == CallSite::both;
  g_python = what == CallSite::python || what == CallSite::both;
  if (g_native && !native::begin()) {
    say("TPROF_CALLSITE: no native frames: no thread-local key is left");
  }
  char why[64];
  FixedText text(why);
  if (g_python && !python::find(text)) {
    g_python = false;
    if (text.size() != 0) say("TPROF_CALLSITE: no Python frames: unknown layout ", why);
  }
  if (g_native || g_python) g_switches.sites.store(true, std::memory_order_relaxed);
}

// The child has its own table, which is empty.
void after_fork() {
  if (g_switches.sites.exchange(false)) g_sites.clear();
}

}  // namespace tprof::sites
