#include "interpose/session/coverage.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "interpose/api/functions.h"
#include "interpose/base/environment.h"
#include "interpose/base/loaded_objects.h"
#include "interpose/base/lock.h"
#include "interpose/base/mapped_symbols.h"
#include "interpose/format/coverage.h"
#include "interpose/session/session.h"

namespace tprof::coverage {
namespace {

Lock g_lock{LockOrder::coverage};
std::atomic<const void*> g_taken[kFunctionCount];   // taken by address, so not wrapped
std::atomic<unsigned long long> g_objects_seen{0};  // the loader's count of mapped objects

// Callers of calls that were passed on. There may be more, but the first few show the object.
std::atomic<const void*> g_passed_on[8];

struct Object {
  const void* base;
  const char* path;
};
Object object_of(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0) return {};
  return {info.dli_fbase, info.dli_fname};
}

// Returns this library's mapping.
Object ourselves() {
  return object_of(reinterpret_cast<const void*>(&note_environment));
}
bool is_us(std::string_view path) {
  const char* ours = ourselves().path;
  return ours != nullptr && file_name(path) == file_name(ours);
}

void note_preloads() {
  const char* list = environment_value("LD_PRELOAD");
  if (list == nullptr) return;
  bool before = false;
  each_preload(list, [&](std::string_view entry) { before = before || is_us(entry); });
  each_preload(list, [&](std::string_view entry) {
    if (is_us(entry)) {
      before = false;
    } else {
      note(before ? Note::preload_before : Note::preload, entry);
    }
  });
}

// For a function whose address the program takes, dlsym may return the program's own symbol, which
// it has but does not define.
bool defines(const void* address) {
  Dl_info info{};
  ElfW(Sym)* symbol = nullptr;
  return dladdr1(address, &info, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) == 0 ||
         symbol == nullptr || symbol->st_shndx != SHN_UNDEF;
}

// Returns the path of an object. `buffer` is for the program's path: the loader knows only the name
// by which it was called.
std::string_view path_of(const Object& object, std::span<char> buffer) {
  if (object.path != nullptr && std::strchr(object.path, '/') != nullptr) return object.path;
  return program_path(object.base, buffer);
}

void note(Note what, const Object& object) {
  char program[256];
  const std::string_view path = path_of(object, program);
  if (object.base != nullptr && !path.empty()) coverage::note(what, path);
}

// Notes objects whose nccl* and cuda* functions come before ours: they decide which calls reach us.
void note_interposers() {
  const Object self = ourselves();
  for (const FunctionInfo& function : kFunctions) {
    if (function.name.empty()) continue;
    const void* first = loader::dlsym(RTLD_DEFAULT, function.name.data());
    if (first == nullptr || !defines(first)) continue;
    const Object other = object_of(first);
    if (other.base != self.base) note(Note::interposer, other);
  }
}

}  // namespace

void note(Note what, std::string_view path) {
  Head& head = session::mapping().head();
  NotedObject entry{static_cast<std::uint8_t>(what), {}};
  copy_text(entry.path, path);
  const LockGuard guard(g_lock);
  const std::uint32_t n = head.notes.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < n; ++i) {
    const bool same_path = std::strcmp(head.note[i].path, entry.path) == 0;
    const auto known = static_cast<Note>(head.note[i].note);
    // If a library calls itself through an interposer, it is not the interposer's call.
    const bool same = known == what || (what == Note::nested && known == Note::interposer);
    if (same_path && same) return;
  }
  if (n == kMaxNotes) return;
  head.note[n] = entry;
  head.notes.store(n + 1, std::memory_order_release);
}

void note_environment() {
  note_preloads();
  note_interposers();
  for (const KnownVariable& variable : kToolVariables) {
    const char* value = environment_value(variable.name);
    if (value != nullptr && *value != '\0' && !is_us(value)) note(variable.note, value);
  }
}

void taken_by_address(Fn fn, const void* address) {
  if (!moves_data(fn)) return;
  g_taken[static_cast<std::size_t>(fn)].store(address, std::memory_order_relaxed);
}

void passed_on(const void* from) {
  for (std::atomic<const void*>& caller : g_passed_on) {
    const void* known = nullptr;
    if (caller.compare_exchange_strong(known, from) || known == from) return;
  }
}

void note_objects() {
  for (const auto& caller : g_passed_on) {
    if (const void* at = caller.load(std::memory_order_relaxed)) {
      note(Note::nested, object_of(at));
    }
  }
  for (const auto& taken : g_taken) {
    if (const void* at = taken.load(std::memory_order_relaxed)) {
      note(Note::dlsym, object_of(at));
    }
  }
  note_mapped();
}

void note_mapped() {
  const unsigned long long seen = g_objects_seen.load(std::memory_order_relaxed);
  unsigned long long objects = seen;
  const bool looked = each_loaded_object([&](const dl_phdr_info& object) {
    objects = object.dlpi_adds;
    if (objects == seen) return true;
    const std::string_view path = object.dlpi_name == nullptr ? "" : object.dlpi_name;
    if (const KnownObject* known = known_object(path)) note(known->note, path);
    return false;
  });
  if (looked) g_objects_seen.store(objects, std::memory_order_relaxed);
}

void after_fork() {
  for (auto& caller : g_passed_on) caller.store(nullptr, std::memory_order_relaxed);
  g_objects_seen.store(0, std::memory_order_relaxed);  // the child has a head of its own to fill
}

}  // namespace tprof::coverage
