#include "interpose/sites/sites.h"

#include <dlfcn.h>

#include <algorithm>

#include "interpose/base/complain.h"
#include "interpose/base/hash.h"
#include "interpose/base/held_signals.h"
#include "interpose/base/lock.h"
#include "interpose/resolve/binding.h"
#include "interpose/sites/known_rules.h"
#include "interpose/sites/objects.h"
#include "interpose/sites/python.h"
#include "interpose/sites/walk.h"
#include "interpose/thread/tables.h"

namespace tprof::sites {
namespace {

bool g_native = false;
bool g_python = false;

// Maps a site's key to its number. Keys are added under the lock and never move.
constexpr std::uint32_t kPlaces = 4 * kTableChunks * kChunkEntries;  // 1 MiB, touched as used
struct Place {
  std::atomic<std::uint64_t> key;
  std::atomic<std::uint16_t> site;
};
Place g_place[kPlaces];
Lock g_sites_lock{LockOrder::sites};

// Returns the place of `key`, or the free one where it goes.
Place* place_of(std::uint64_t key) {
  for (std::uint32_t n = 0; n < kPlaces; ++n) {
    Place& p = g_place[(key + n) % kPlaces];
    const std::uint64_t at = p.key.load(std::memory_order_acquire);
    if (at == key || at == 0) return &p;
  }
  return nullptr;
}

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
  return std::max<std::uint64_t>(key, 1);
}

bool known(std::uint64_t key, std::uint16_t& site) {
  const Place* place = place_of(key);
  if (place == nullptr || place->key.load(std::memory_order_acquire) != key) return false;
  site = place->site.load(std::memory_order_relaxed);
  return true;
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
    site.frames_cut = true;  // made while the program runs: nobody could tell what it is
    break;
  }
  const auto* call = static_cast<const char*>(seen.caller) - 1;
  if (resolve::is_ours(call))
    return;  // called by a pointer from dlsym: the first frame is the caller
  site.caller = at[0];
  Dl_info where{};
  if (dladdr(call, &where) != 0 && where.dli_sname != nullptr)
    copy_text(site.symbol, where.dli_sname);
}

std::uint16_t add(std::uint64_t key, const Seen& seen) {
  const HeldSignals held_signals;
  const KeepErrno keep_errno;
  Site site{};
  site.key = key;
  if (g_native) describe_native(seen, site);
  FixedText text(site.python);
  for (std::size_t i = 0; i < seen.python_frames; ++i) {
    if (!python::describe(seen.python[i], text, sizeof site.python - 1)) break;
  }
  const LockGuard guard(g_sites_lock);
  Place* place = place_of(key);
  if (place == nullptr) return 0;
  if (place->key.load(std::memory_order_relaxed) == key) {  // another thread was faster
    return place->site.load(std::memory_order_relaxed);
  }
  const auto number = static_cast<std::uint16_t>(
      tables::append(session::mapping().head().sites, site, [](std::uint32_t) {}));
  if (number == 0) return 0;  // the table is full, so the site is tried again at each call
  place->site.store(number, std::memory_order_relaxed);
  place->key.store(key, std::memory_order_release);
  return number;
}

// If stacks differ all the time (a recursion), they would leave no room for other places. Beyond
// this many sites, stacks are left out.
constexpr std::uint32_t kPlacesWithStacks = 3 * (kTableChunks * kChunkEntries / 4);

[[gnu::noinline]] std::uint16_t new_site(Seen& seen) {
  if (g_native && native::forget_unloaded()) {
    seen.stack = native::walk(seen.address, kMaxNativeFrames);
  }
  if (View::entries(session::mapping().head().sites) >= kPlacesWithStacks)
    seen.stack = {0, g_native};
  std::uint16_t site = 0;
  const std::uint64_t key = key_of(seen);
  return known(key, site) ? site : add(key, seen);
}

}  // namespace

std::uint16_t site_of(const void* caller) {
  Seen seen;
  seen.caller = caller;
  seen.python_frames = g_python ? python::frames(seen.python, kMaxSiteFrames) : 0;
  if (g_native) seen.stack = native::walk(seen.address, kMaxNativeFrames);
  if (seen.python_frames == 0 && !g_native) return 0;
  std::uint16_t site = 0;
  return known(key_of(seen), site) ? site : new_site(seen);
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

// The child's table is its own, and begins empty.
void after_fork() {
  if (!g_extras.sites.exchange(false)) return;
  for (Place& p : g_place) {
    if (p.key.load(std::memory_order_relaxed) != 0) p.key.store(0, std::memory_order_relaxed);
  }
}

}  // namespace tprof::sites
