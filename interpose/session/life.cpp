#include "interpose/session/session.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstring>

#include "interpose/api/functions.h"
#include "interpose/base/at_fork.h"
#include "interpose/base/clock.h"
#include "interpose/base/complain.h"
#include "interpose/base/disk_space.h"
#include "interpose/base/keep_errno.h"
#include "interpose/base/lock.h"
#include "interpose/capture/communicators.h"
#include "interpose/capture/memory.h"
#include "interpose/capture/tables.h"
#include "interpose/capture/thread.h"
#include "interpose/emit/output.h"
#include "interpose/emit/writer.h"
#include "interpose/graphs/graphs.h"
#include "interpose/lines/drain.h"
#include "interpose/nvtx/missed.h"
#include "interpose/nvtx/ranges.h"
#include "interpose/resolve/resolve.h"
#include "interpose/session/coverage.h"
#include "interpose/session/header.h"
#include "interpose/session/leaving.h"
#include "interpose/session/process.h"
#include "interpose/session/rank_file.h"

// What glibc's at_quick_exit calls, which is linked in; weak, since musl lacks it.
extern "C" [[gnu::weak]] int __cxa_at_quick_exit(void (*)(void*), void* object);

namespace tprof::session {

Wiped g_wiped;

namespace {

Mapping g_mapping;
Config g_config;
// Constant from the start: a session may begin before the constructors of this library.
constinit RankFile g_file{};
std::atomic<bool> g_started{false};
std::atomic<bool> g_closed{false};
std::atomic<long> g_exiting_thread{0};
Lock g_lock;
bool g_forked = false;            // the tables are still the parent's
std::uint32_t g_last_number = 0;  // not wiped
bool g_turned_off = false;

ProcessId g_self{};         // of the session
ProcessId g_forked_from{};  // the traced process that this one, or its parent, was forked from

constexpr std::uint32_t kCloseTimeoutMs = 10'000;

void turn_off() {
  g_turned_off = true;
  g_wiped.number.store(kOff, std::memory_order_release);
}

template <std::size_t N>
void copy_text(char (&to)[N], std::string_view from) {
  const std::size_t n = from.size() < N - 1 ? from.size() : N - 1;
  std::memcpy(to, from.data(), n);
  to[n] = '\0';
}

void fill_head(const Process& process, const ClockAnchor& anchor) {
  Head& head = g_mapping.head();
  head.layout = kRingLayout;
  head.head_size = sizeof(Head);
  copy_text(head.version, kVersion);
  copy_text(head.boot_id, process.boot_id);
  head.pid = process.pid;
  head.start_ticks = process.start_ticks;
  copy_text(head.rank_file, g_file.name);
  copy_text(head.directory, g_file.directory);
  head.base_mono_ns = anchor.mono_ns;
  head.base_real_ns = anchor.real_ns;
  head.rank_known = process.rank >= 0;
  head.line_pid = process.rank >= 0 ? process.rank : process.pid;
  head.quota = g_config.quota;
  const bool lines = g_config.all_ranks || rank_in_list(g_config.ranks, process.rank);
  head.events = static_cast<std::uint32_t>(lines ? g_config.events : EventLines::off);
  head.copy_element_size = g_config.copy_element_size;
  head.comms.entry_size = sizeof(Communicator);
  head.graphs.entry_size = sizeof(Graph);
  head.functions = kFunctionCount;
  for (std::size_t i = 1; i < kFunctionCount; ++i) {
    copy_text(head.function[i].name, kFunctions[i].name);
    head.function[i].elements = kFunctions[i].elements;
    head.function[i].collective = kFunctions[i].order == Order::collective;
  }
  std::atomic_signal_fence(std::memory_order_release);
  std::memcpy(head.magic, kRingMagic, sizeof head.magic);
}

// In a forked child, before it has other threads: by pthread_atfork's handler or, where the fork
// was a bare clone(), at its first call.
void leave_parents_session() {
  g_lock.unlock();
  tables::after_fork();
  threads_after_fork();
  ranges::after_fork();
  resolve::after_fork();
  coverage::after_fork();
  memory::after_fork();
  writer::after_fork();
  // The parent's files, also where another thread was only making them: nothing of ours may be
  // written there.
  leave_files(g_file);
  g_mapping.close();
  if (g_started.load(std::memory_order_relaxed)) {
    g_forked_from = g_self;
    g_started.store(false, std::memory_order_relaxed);
    g_closed.store(false, std::memory_order_relaxed);
    g_forked = true;
  }
  g_wiped.begun.store(1, std::memory_order_relaxed);
  g_wiped.number.store(g_turned_off ? kOff : ++g_last_number, std::memory_order_release);
}

// The exit handlers have come to ours. Threads notice by the new number, at their next call.
void end_session() {
  g_exiting_thread.store(syscall(SYS_gettid), std::memory_order_relaxed);
  g_closed.store(true, std::memory_order_release);
  resolve::stop_opening();
  if (started()) g_wiped.number.store(++g_last_number, std::memory_order_release);
}

// quick_exit may be called by a signal handler.
void close_at_quick_exit(void*) {
  if (!to_be_closed()) return;
  end_session();
  leave();
}

void begin_once() {
  static std::atomic<bool> handlers{false};
  if (!handlers.exchange(true)) {
    at_fork(nullptr, nullptr, leave_parents_session);
    if (__cxa_at_quick_exit != nullptr) __cxa_at_quick_exit(close_at_quick_exit, &__dso_handle);
    madvise(&g_wiped, sizeof g_wiped, MADV_WIPEONFORK);  // Linux 4.14; else the handlers must do
  }
  const HeldSignals held_signals;  // a handler that calls would wait for its own thread
  if (g_wiped.begun.exchange(1, std::memory_order_acquire) != 0) {
    const KeepErrno keep_errno;
    while (number() == 0) {
      syscall(SYS_futex, &g_wiped.number, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
    }
    return;
  }
  if (g_last_number != 0) {
    leave_parents_session();
  } else {
    g_wiped.number.store(++g_last_number, std::memory_order_release);
  }
  syscall(SYS_futex, &g_wiped.number, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// Room for the closing lines goes before the ring: a disk too full for both is no place for a ring,
// of which it would hold the head and no counts.
bool open_mapping() {
  constexpr std::uint64_t kHeaderBytes = 16 << 10;
  if (!g_mapping.open(g_file.ring_fd, g_file.ring_keeps_room)) return false;
  if (!g_mapping.in_file()) return true;
  const Reserved room = reserve_blocks(g_file.fd, 0, kHeaderBytes + kClosingBytes);
  if (room != Reserved::no) return true;
  g_mapping.close();
  drop_ring_file(g_file);
  return g_mapping.open(-1, false);
}

// Into files that exist. False, with one line said: tracing is not to be.
bool start_in_files(const Process& process, std::string_view libraries) {
  if (!open_mapping()) {
    complain(Trouble::start, "not tracing: no address space for the ring");
    return false;
  }
  if (!g_mapping.in_file()) drop_ring_file(g_file);
  create_snapshot(g_file);
  const ClockAnchor anchor = clock_anchor();
  fill_head(process, anchor);
  Text header;
  header_lines(header, g_mapping.view(), g_config, process, g_file, anchor.bracket_ns, libraries);
  // Before the header is there: a file with one has a ring that can be read.
  Progress begin{};
  begin.offset = header.size();
  commit_progress(g_mapping.head(), begin);
  if (header.failed() ||
      pwrite(g_file.fd, header.data(), header.size(), 0) != static_cast<ssize_t>(header.size())) {
    complain(Trouble::start, "not tracing: cannot write to ", g_file.directory);
    return false;
  }
  if (!writer::start(g_mapping.view(), g_file.fd, header.size(), g_file.snapshot_fd,
                     prepare_rings)) {
    complain(Trouble::start, "not tracing: cannot start the writer thread");
    return false;
  }
  if (!g_mapping.in_file()) {
    complain(Trouble::room, "no ring file in ", g_file.directory,
             ": a kill would lose what is not written yet");
  }
  resolve::publish(g_mapping.head());
  missed::publish(g_mapping.head());
  return true;
}

bool start_locked(std::string_view libraries) {
  if (g_forked) {
    // Not in the fork itself: most children (a data loader's workers) never come here.
    comms::forget_all();
    graphs::forget_all();
  }
  g_config = read_config();
  Process process = describe_process(g_config.redact);
  process.forked_from = g_forked_from;
  g_self = {process.pid, process.start_ns};
  if (!size_allowed(kClosingBytes)) {
    complain(Trouble::start, "not tracing: the file size limit (ulimit -f) is under 64 KiB");
    return false;
  }
  if (!create_rank_file(g_config, process, g_file)) return false;
  if (start_in_files(process, libraries)) return true;
  g_mapping.close();
  drop_ring_file(g_file);
  drop_snapshot(g_file);
  drop_rank_file(g_file);
  return false;
}

// Once the rank file is closed. After a chroot the paths may be somebody else's.
void remove_ring_and_snapshot() {
  if (g_file.ring_path[0] != '\0' && file_at(g_file.ring_path) == g_file.ring_id) {
    unlink(g_file.ring_path);
  }
  if (g_file.snapshot_fd >= 0 && file_at(g_file.snapshot_path) == g_file.snapshot_id) {
    unlink(g_file.snapshot_path);
  }
}

void close_files() {
  coverage::note_objects(g_mapping.head());
  if (writer::close_file(kCloseTimeoutMs)) remove_ring_and_snapshot();
}

// Runs from exit(), after the program's own atexit handlers.
[[gnu::destructor]] void close_at_exit() {
  if (coverage::any_early()) start();  // for a file that says so
  end_session();
  if (started()) close_files();
}

}  // namespace

bool started() {
  return g_started.load(std::memory_order_acquire) && number() != 0;
}
Mapping& mapping() {
  return g_mapping;
}
const Config& config() {
  return g_config;
}
void wake_writer() {
  writer::wake();
}
bool in_exiting_thread() {
  return g_exiting_thread.load(std::memory_order_relaxed) == syscall(SYS_gettid);
}
bool closed() {
  return g_closed.load(std::memory_order_acquire);
}
void late_call() {
  const HeldSignals held_signals;
  const KeepErrno keep_errno;
  close_files();
}
void look_around() {
  if (started()) coverage::note_objects(g_mapping.head());
}

void begin() {
  if (number() == 0) begin_once();
}

bool to_be_closed() {
  return started() && !closed() && g_mapping.head().pid == syscall(SYS_getpid);
}
void leave() {
  if (writer::close_on_its_thread(kCloseTimeoutMs)) remove_ring_and_snapshot();
}
void stay() {
  if (g_mapping.in_file()) {
    complain(Trouble::program,
             "a program could not be executed: from here on a kill would lose what is not written");
  }
  writer::go_on();
}

// Facts first, the lock after: whoever holds the loader's lock (a library's constructor that makes
// calls) may be waiting for ours.
bool start() {
  if (started()) return true;
  const HeldSignals held_signals;
  begin();
  if (number() == kOff) return false;
  const bool disabled = disabled_by_environment();
  Text libraries;
  if (!disabled) loaded_libraries(libraries);
  {
    const LockGuard guard(g_lock);
    if (started()) return true;
    if (number() == kOff) return false;
    if (disabled || !start_locked(libraries.view())) {
      turn_off();
      return false;
    }
    g_started.store(true, std::memory_order_release);
  }
  coverage::note_environment(g_mapping.head());
  coverage::note_objects(g_mapping.head());
  return true;
}

}  // namespace tprof::session
