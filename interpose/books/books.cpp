#include "interpose/books/books.h"

#include <algorithm>
#include <iterator>

#include "interpose/base/lock.h"
#include "interpose/base/page_map.h"
#include "interpose/format/ring_file.h"

namespace tprof::books {
namespace {

// One map holds all of these, told apart by the highest bits of the key: no address has these bits.
enum class Of : std::uint64_t { memory = 1, handle = 2, block = 3, mapping = 4 };
constexpr std::uint64_t key_of(Of what, std::uint64_t number) {
  constexpr int kBits = 60;
  return static_cast<std::uint64_t>(what) << kBits | (number & ((std::uint64_t{1} << kBits) - 1));
}
std::uint64_t key_of(const void* at) {
  return key_of(Of::memory, reinterpret_cast<std::uintptr_t>(at));
}

// False for physical memory.
constexpr bool is_allocation(std::uint64_t key) {
  return key < key_of(Of::handle, 0);
}

constinit MemoryUse g_before_session[kMemoryPlaces] = {};

constinit Lock g_lock{LockOrder::books};  // for all that follows
constinit PageMap<Entry> g_entries;
constinit MemoryUse* g_use = g_before_session;
constinit Head* g_head = nullptr;
constinit std::uint64_t g_count = 0;  // how many entries were made
constinit bool g_failed = false;      // something found no room: no number is right any more

void fail() {
  g_failed = true;
  if (g_head != nullptr) g_head->memory_booked.store(0, std::memory_order_relaxed);
}

void add(std::uint8_t place, std::uint64_t bytes) {
  MemoryUse& use = g_use[place];
  const std::uint64_t now = use.bytes.load(std::memory_order_relaxed) + bytes;
  if (now > use.peak.load(std::memory_order_relaxed)) {
    use.peak.store(now, std::memory_order_release);
  }
  use.bytes.store(now, std::memory_order_release);
}
void subtract(std::uint8_t place, std::uint64_t bytes) {
  MemoryUse& use = g_use[place];
  const std::uint64_t now = use.bytes.load(std::memory_order_relaxed);
  use.bytes.store(now - std::min(now, bytes), std::memory_order_release);
}

// False: there is no room, and the books are over.
bool insert(std::uint64_t key, const Entry& entry) {
  if (g_failed) return false;
  if (g_entries.insert(key, entry)) return true;
  fail();
  return false;
}

void drop_use(std::uint64_t block) {
  Entry* of_block = g_entries.find(key_of(Of::block, block));
  if (of_block == nullptr || --of_block->uses != 0) return;
  subtract(of_block->place, of_block->bytes);
  g_entries.erase(key_of(Of::block, block));
}

// Drops what the books have at a place: it was freed where nobody saw it.
void forget(std::uint64_t key) {
  const Entry* known = g_entries.find(key);
  if (known == nullptr) return;
  const Entry gone = *known;
  g_entries.erase(key);
  if (is_allocation(key)) return subtract(gone.place, gone.bytes);
  if (gone.block == 0) return;
  for (std::uint32_t i = 0; i < std::max(gone.uses, 1U); ++i) drop_use(gone.block);
}

void enter(std::uint64_t key, const Entry& entry) {
  forget(key);
  if (insert(key, entry)) add(entry.place, entry.bytes);
}

}  // namespace

void allocated(const void* at, std::uint64_t bytes, std::uint8_t place, int device) {
  if (at == nullptr) return;
  const LockGuard guard(g_lock);
  enter(key_of(at), {bytes, ++g_count, 0, 0, static_cast<std::int16_t>(device), place});
}

Taken take(const void* at) {
  Taken taken;
  if (at == nullptr) return taken;
  const LockGuard guard(g_lock);
  const std::uint64_t key = key_of(at);
  const Entry* known = g_entries.find(key);
  if (known == nullptr) return taken;
  taken = {key, *known};
  g_entries.erase(key);
  subtract(taken.entry.place, taken.entry.bytes);
  return taken;
}

void put_back(const Taken& taken) {
  if (taken.key == 0) return;
  const LockGuard guard(g_lock);
  if (g_entries.find(taken.key) == nullptr) enter(taken.key, taken.entry);
}

void device_was_reset(int device) {
  const LockGuard guard(g_lock);
  g_entries.erase_if([&](std::uint64_t key, const Entry& entry) {
    const bool gone = is_allocation(key) && entry.owner == device;
    if (gone) subtract(entry.place, entry.bytes);
    return gone;
  });
}

void created(std::uint64_t handle, std::uint64_t bytes, std::uint8_t place) {
  const LockGuard guard(g_lock);
  const std::uint64_t block = ++g_count;
  forget(key_of(Of::handle, handle));
  if (!insert(key_of(Of::handle, handle), {0, block, block, 1, -1, place})) return;
  if (insert(key_of(Of::block, block), {bytes, block, 0, 1, -1, place})) add(place, bytes);
}

void retained(std::uint64_t handle, std::uint64_t address) {
  const LockGuard guard(g_lock);
  std::uint64_t block = 0;
  g_entries.each([&](std::uint64_t key, const Entry& entry) {
    const std::uint64_t begin = key - key_of(Of::mapping, 0);  // other kinds: beyond any address
    if (address >= begin && address - begin < entry.bytes) block = entry.block;
    return block == 0;
  });
  Entry* of_block = block == 0 ? nullptr : g_entries.find(key_of(Of::block, block));
  if (of_block == nullptr) return;
  ++of_block->uses;
  Entry* of_handle = g_entries.find(key_of(Of::handle, handle));
  if (of_handle != nullptr && of_handle->block == block) {
    ++of_handle->uses;
    return;
  }
  const std::uint8_t place = of_block->place;
  forget(key_of(Of::handle, handle));
  insert(key_of(Of::handle, handle), {0, ++g_count, block, 1, -1, place});
}

Released release(std::uint64_t handle) {
  Released released;
  const LockGuard guard(g_lock);
  Entry* of_handle = g_entries.find(key_of(Of::handle, handle));
  if (of_handle == nullptr) return released;
  const Entry* of_block = g_entries.find(key_of(Of::block, of_handle->block));
  if (of_block == nullptr) return released;
  released = {handle, *of_handle, of_handle->block, *of_block};
  if (--of_handle->uses == 0) g_entries.erase(key_of(Of::handle, handle));
  drop_use(released.block);
  return released;
}

void put_back(const Released& r) {
  if (r.block == 0) return;
  const LockGuard guard(g_lock);
  if (Entry* of_block = g_entries.find(key_of(Of::block, r.block))) {
    ++of_block->uses;
  } else {
    Entry alone = r.of_block;
    alone.uses = 1;
    if (insert(key_of(Of::block, r.block), alone)) add(alone.place, alone.bytes);
  }
  if (Entry* of_handle = g_entries.find(key_of(Of::handle, r.handle))) {
    ++of_handle->uses;
  } else {
    Entry alone = r.of_handle;
    alone.uses = 1;
    insert(key_of(Of::handle, r.handle), alone);
  }
}

std::uint64_t about_to_map(std::uint64_t handle) {
  const LockGuard guard(g_lock);
  const Entry* of_handle = g_entries.find(key_of(Of::handle, handle));
  if (of_handle == nullptr) return 0;
  const std::uint64_t block = of_handle->block;
  Entry* of_block = g_entries.find(key_of(Of::block, block));
  if (of_block == nullptr) return 0;
  ++of_block->uses;
  return block;
}

void mapped(std::uint64_t block, std::uint64_t address, std::uint64_t bytes) {
  const LockGuard guard(g_lock);
  forget(key_of(Of::mapping, address));
  insert(key_of(Of::mapping, address), {bytes, ++g_count, block, 0, -1, kOtherDevice});
}

void not_mapped(std::uint64_t block) {
  if (block == 0) return;
  const LockGuard guard(g_lock);
  drop_use(block);
}

std::uint64_t now() {
  const LockGuard guard(g_lock);
  return g_count;
}

// Mappings that are unmapped together lie side by side.
void unmapped(std::uint64_t address, std::uint64_t bytes, std::uint64_t before) {
  const LockGuard guard(g_lock);
  const std::uint64_t end = address + bytes;
  while (address < end) {
    const Entry* known = g_entries.find(key_of(Of::mapping, address));
    if (known == nullptr || known->bytes == 0) return;
    address += known->bytes;
    if (known->since > before) continue;
    const std::uint64_t block = known->block;
    g_entries.erase(key_of(Of::mapping, address - known->bytes));
    if (block != 0) drop_use(block);
  }
}

void publish(Head& head) {
  const LockGuard guard(g_lock);
  for (std::size_t i = 0; i < kMemoryPlaces; ++i) {
    head.memory[i].peak.store(g_use[i].peak.load(std::memory_order_relaxed));
    head.memory[i].bytes.store(g_use[i].bytes.load(std::memory_order_relaxed));
  }
  g_use = head.memory;
  g_head = &head;
  head.memory_booked.store(g_failed ? 0 : 1, std::memory_order_release);
}

void after_fork() {
  const LockGuard guard(g_lock);
  g_entries.release();
  for (MemoryUse& use : g_before_session) {
    use.bytes.store(0, std::memory_order_relaxed);
    use.peak.store(0, std::memory_order_relaxed);
  }
  g_use = g_before_session;
  g_head = nullptr;
  g_failed = false;
}

}  // namespace tprof::books
