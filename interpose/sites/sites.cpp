#include "interpose/sites/sites.h"

#include <dlfcn.h>

#include <algorithm>

#include "interpose/base/complain.h"
#include "interpose/base/hash.h"
#include "interpose/base/held_signals.h"
#include "interpose/base/lock.h"
#include "interpose/resolve/binding.h"
#include "interpose/sites/python.h"
#include "interpose/thread/tables.h"

namespace tprof::sites {
namespace {

bool g_native = false;
bool g_python = false;

// Which number a site's key has. Keys are added under the lock and never move.
constexpr std::uint32_t kPlaces = 4 * kTableChunks * kChunkEntries;  // 1 MiB, touched as used
struct Place {
  std::atomic<std::uint64_t> key;
  std::atomic<std::uint16_t> site;
};
Place g_place[kPlaces];
Lock g_lock;

// The place of `key`, or the free one where it goes.
Place* place_of(std::uint64_t key) {
  for (std::uint32_t n = 0; n < kPlaces; ++n) {
    Place& p = g_place[(key + n) % kPlaces];
    const std::uint64_t at = p.key.load(std::memory_order_acquire);
    if (at == key || at == 0) return &p;
  }
  return nullptr;
}

void describe_caller(const void* caller, Site& site) {
  Dl_info where{};
  // The call is before the address that it returns to, which may be another function's.
  const auto* call = static_cast<const char*>(caller) - 1;
  if (resolve::is_ours(call)) return;  // of a pointer that dlsym gave: not known
  if (dladdr(call, &where) == 0 || where.dli_fname == nullptr) return;
  copy_text(site.object, where.dli_fname);
  site.offset = static_cast<std::uint64_t>(static_cast<const char*>(caller) -
                                           static_cast<const char*>(where.dli_fbase));
  if (where.dli_sname != nullptr) copy_text(site.symbol, where.dli_sname);
}

std::uint16_t add(std::uint64_t key, const void* caller, const python::Frame* frames,
                  std::size_t n) {
  const HeldSignals held_signals;
  const KeepErrno keep_errno;
  Site site{};
  site.key = key;
  if (g_native) describe_caller(caller, site);
  FixedText text(site.python);
  for (std::size_t i = 0; i < n; ++i) {
    if (!python::describe(frames[i], text, sizeof site.python - 1)) break;
  }
  const LockGuard guard(g_lock);
  Place* place = place_of(key);
  if (place == nullptr) return 0;
  if (place->key.load(std::memory_order_relaxed) == key) {  // another thread was faster
    return place->site.load(std::memory_order_relaxed);
  }
  const auto number = static_cast<std::uint16_t>(
      tables::append(session::mapping().head().sites, site, [](std::uint32_t) {}));
  if (number == 0) return 0;  // the table is full: it is asked for again, and has none
  place->site.store(number, std::memory_order_relaxed);
  place->key.store(key, std::memory_order_release);
  return number;
}

}  // namespace

std::uint16_t site_of(const void* caller) {
  python::Frame frames[kMaxSiteFrames];
  const std::size_t n = g_python ? python::frames(frames, kMaxSiteFrames) : 0;
  std::uint64_t key = g_native ? reinterpret_cast<std::uintptr_t>(caller) : 1;
  for (std::size_t i = 0; i < n; ++i) key = mix64(key ^ python::identity(frames[i]));
  if (n == 0 && !g_native) return 0;
  key = std::max<std::uint64_t>(key, 1);
  const Place* place = place_of(key);
  if (place != nullptr && place->key.load(std::memory_order_acquire) == key) {
    return place->site.load(std::memory_order_relaxed);
  }
  return add(key, caller, frames, n);
}

void begin(CallSite what) {
  g_native = what == CallSite::native || what == CallSite::both;
  g_python = what == CallSite::python || what == CallSite::both;
  char why[64];
  FixedText text(why);
  if (g_python && !python::find(text)) {
    g_python = false;
    if (text.size() != 0) say("TPROF_CALLSITE: no Python frames: they are not known ", why);
  }
  if (g_native || g_python) g_extras.sites.store(true, std::memory_order_relaxed);
}

// Its table is its own, and begins empty.
void after_fork() {
  if (!g_extras.sites.exchange(false)) return;
  for (Place& p : g_place) {
    if (p.key.load(std::memory_order_relaxed) != 0) p.key.store(0, std::memory_order_relaxed);
  }
}

}  // namespace tprof::sites
