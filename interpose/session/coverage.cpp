#include "coverage.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "interpose/api/functions.h"
#include "interpose/capture/spin_lock.h"
#include "interpose/format/coverage.h"
#include "loaded_objects.h"

namespace tprof::coverage {
namespace {

SpinLock g_lock;
std::atomic<const void*> g_taken[kFunctionCount];  // by address, past us
std::atomic<bool> g_any_taken{false};
std::atomic<unsigned long long> g_objects_seen{0};  // the loader's count of objects mapped so far

int note_object(dl_phdr_info* object, std::size_t, void* data) {
  if (object->dlpi_adds == g_objects_seen.load(std::memory_order_relaxed)) return 1;
  const std::string_view path = object->dlpi_name == nullptr ? "" : object->dlpi_name;
  if (const KnownObject* known = known_object(path)) {
    note(*static_cast<Head*>(data), known->note, path);
  }
  return 0;
}

int count_objects(dl_phdr_info* object, std::size_t, void* data) {
  *static_cast<unsigned long long*>(data) = object->dlpi_adds;
  return 1;
}

struct Object {
  const void* base;
  const char* path;
};
Object object_of(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0) return {};
  return {info.dli_fbase, info.dli_fname};
}

std::string_view file_name(std::string_view path) {
  return without_prefix(path, path.rfind('/') + 1);
}

void note_preloads(Head& head) {
  const char* list = std::getenv("LD_PRELOAD");
  if (list == nullptr) return;
  const Object self = object_of(reinterpret_cast<const void*>(&note_environment));
  const std::string_view ours = self.path == nullptr ? "" : file_name(self.path);
  bool listed = false;
  each_preload(list, [&](std::string_view entry) { listed = listed || file_name(entry) == ours; });
  bool before = listed;
  each_preload(list, [&](std::string_view entry) {
    if (file_name(entry) == ours) {
      before = false;
    } else {
      note(head, before ? Note::preload_before : Note::preload, entry);
    }
  });
}

// A program that takes a function's address may itself stand for that function in the eyes of
// dlsym: by a symbol that it has, but does not define.
bool defines(const void* address) {
  Dl_info info{};
  ElfW(Sym)* symbol = nullptr;
  return dladdr1(address, &info, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) == 0 ||
         symbol == nullptr || symbol->st_shndx != SHN_UNDEF;
}

// Whose nccl* and cuda* functions come before ours: calls reach us only if it passes them on.
void note_interposers(Head& head) {
  const Object self = object_of(reinterpret_cast<const void*>(&note_environment));
  for (const FunctionInfo& function : kFunctions) {
    if (function.name.empty()) continue;
    const void* first = dlsym(RTLD_DEFAULT, function.name.data());
    if (first == nullptr || !defines(first)) continue;
    const Object other = object_of(first);
    if (other.base == nullptr || other.base == self.base) continue;
    if (other.path != nullptr && std::strchr(other.path, '/') != nullptr) {
      note(head, Note::interposer, other.path);
      continue;
    }
    // The program, by the name under which it was called.
    char program[256];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program);
    if (n > 0) note(head, Note::interposer, {program, static_cast<std::size_t>(n)});
  }
}

void note_taken(Head& head) {
  for (const auto& taken : g_taken) {
    const void* address = taken.load(std::memory_order_relaxed);
    if (address == nullptr) continue;
    const Object from = object_of(address);
    if (from.path != nullptr) note(head, Note::dlsym, from.path);
  }
}

}  // namespace

void note(Head& head, Note what, std::string_view path) {
  NotedObject entry{static_cast<std::uint8_t>(what), {}};
  path = prefix(path, sizeof entry.path - 1);
  std::memcpy(entry.path, path.data(), path.size());
  const SpinGuard guard(g_lock);
  const std::uint32_t n = head.notes.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (std::memcmp(&head.note[i], &entry, sizeof entry) == 0) return;
  }
  if (n == kMaxNotes) return;
  head.note[n] = entry;
  head.notes.store(n + 1, std::memory_order_release);
}

void note_environment(Head& head) {
  note_preloads(head);
  note_interposers(head);
  const Object self = object_of(reinterpret_cast<const void*>(&note_environment));
  const std::string_view ours = self.path == nullptr ? "" : file_name(self.path);
  for (const KnownVariable& variable : kToolVariables) {
    const char* value = std::getenv(variable.name);
    if (value == nullptr || *value == '\0' || file_name(value) == ours) continue;
    note(head, variable.note, value);
  }
}

void taken(Fn fn, const void* address) {
  if (!info(fn).data) return;
  g_taken[static_cast<std::size_t>(fn)].store(address, std::memory_order_relaxed);
  g_any_taken.store(true, std::memory_order_release);
}

void note_objects(Head& head) {
  if (g_any_taken.load(std::memory_order_acquire)) note_taken(head);
  unsigned long long objects = 0;
  if (!each_loaded_object(count_objects, &objects)) return;
  each_loaded_object(note_object, &head);
  g_objects_seen.store(objects, std::memory_order_relaxed);
}

void after_fork() {
  g_lock.unlock();
  g_objects_seen.store(0, std::memory_order_relaxed);  // the child has a head of its own to fill
}

}  // namespace tprof::coverage
