#include "interpose/session/coverage.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "interpose/api/functions.h"
#include "interpose/base/environment.h"
#include "interpose/base/loaded_objects.h"
#include "interpose/base/lock.h"
#include "interpose/format/coverage.h"

namespace tprof::coverage {
namespace {

Lock g_lock;
std::atomic<const void*> g_taken[kFunctionCount];  // by address, past us
std::atomic<bool> g_any_taken{false};
std::atomic<unsigned long long> g_objects_seen{0};  // the loader's count of objects mapped so far

// Of calls that were passed on: who made them. Whatever a handler that makes them from more places
// calls, its object is told by the first.
struct PassedOn {
  Note why;
  struct Place {
    std::atomic<const void*> from;
    std::atomic<bool> noted;
  };
  Place place[8];
};
constinit PassedOn g_passed_on[] = {{Note::nested, {}}, {Note::early, {}}};
std::atomic<pid_t> g_early_in{0};

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
  const char* list = environment_value("LD_PRELOAD");
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

bool is_noted(const Head& head, Note what, std::string_view path) {
  for (std::uint32_t i = 0; i < notes_of(head); ++i) {
    if (head.note[i].note == static_cast<std::uint8_t>(what) &&
        bounded_text(head.note[i].path) == path) {
      return true;
    }
  }
  return false;
}

// The path of an object; `buffer` for the program's, which the loader knows by how it was called.
std::string_view path_of(const Object& object, std::span<char> buffer) {
  if (object.path != nullptr && std::strchr(object.path, '/') != nullptr) return object.path;
  const ssize_t n = readlink("/proc/self/exe", buffer.data(), buffer.size());
  return {buffer.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
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
    char program[256];
    const std::string_view path = path_of(other, program);
    if (!path.empty()) note(head, Note::interposer, path);
  }
}

// What an interposer passes on of a library's calls to itself is no call of its own.
void note_passed_on(Head& head) {
  for (PassedOn& passed : g_passed_on) {
    for (PassedOn::Place& place : passed.place) {
      const void* address = place.from.load(std::memory_order_relaxed);
      if (address == nullptr || place.noted.exchange(true)) continue;
      const Object object = object_of(address);
      if (object.base == nullptr) continue;
      char program[256];
      const std::string_view path = path_of(object, program);
      if (!path.empty() && !is_noted(head, Note::interposer, path)) note(head, passed.why, path);
    }
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
  const LockGuard guard(g_lock);
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
    const char* value = environment_value(variable.name);
    if (value == nullptr || *value == '\0' || file_name(value) == ours) continue;
    note(head, variable.note, value);
  }
}

void taken(Fn fn, const void* address) {
  if (!info(fn).data) return;
  g_taken[static_cast<std::size_t>(fn)].store(address, std::memory_order_relaxed);
  g_any_taken.store(true, std::memory_order_release);
}

void passed_on(Note why, const void* from) {
  if (why == Note::early) g_early_in.store(getpid(), std::memory_order_relaxed);
  for (PassedOn& passed : g_passed_on) {
    if (passed.why != why) continue;
    for (PassedOn::Place& place : passed.place) {
      const void* known = nullptr;
      if (place.from.compare_exchange_strong(known, from) || known == from) return;
    }
  }
}

bool any_early() {
  return g_early_in.load(std::memory_order_relaxed) == getpid();
}

void note_objects(Head& head) {
  note_passed_on(head);
  if (g_any_taken.load(std::memory_order_acquire)) note_taken(head);
  note_mapped(head);
}

void note_mapped(Head& head) {
  unsigned long long objects = 0;
  if (!each_loaded_object(count_objects, &objects)) return;
  each_loaded_object(note_object, &head);
  g_objects_seen.store(objects, std::memory_order_relaxed);
}

void after_fork() {
  g_lock.unlock();
  for (PassedOn& passed : g_passed_on) {
    for (PassedOn::Place& place : passed.place) {
      place.from.store(nullptr, std::memory_order_relaxed);
      place.noted.store(false, std::memory_order_relaxed);
    }
  }
  g_objects_seen.store(0, std::memory_order_relaxed);  // the child has a head of its own to fill
}

}  // namespace tprof::coverage
