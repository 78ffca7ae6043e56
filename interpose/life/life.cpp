#include "interpose/life/life.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "interpose/api/functions.h"
#include "interpose/base/clock.h"
#include "interpose/base/complain.h"
#include "interpose/base/disk_space.h"
#include "interpose/base/environment.h"
#include "interpose/base/fork.h"
#include "interpose/base/futex.h"
#include "interpose/base/held_signals.h"
#include "interpose/base/in_time.h"
#include "interpose/base/lock.h"
#include "interpose/base/text.h"
#include "interpose/calls/host_memory.h"
#include "interpose/device/timing.h"
#include "interpose/format/commit.h"
#include "interpose/format/ring_file.h"
#include "interpose/life/control.h"
#include "interpose/marks/missed_calls.h"
#include "interpose/marks/ranges.h"
#include "interpose/marks/sites.h"
#include "interpose/real/resolve.h"
#include "interpose/record/allocations.h"
#include "interpose/record/communicators.h"
#include "interpose/record/graphs.h"
#include "interpose/record/phases.h"
#include "interpose/session/coverage.h"
#include "interpose/session/left_rings.h"
#include "interpose/session/mapping.h"
#include "interpose/session/process.h"
#include "interpose/session/rank_file.h"
#include "interpose/session/session.h"
#include "interpose/user/user.h"
#include "interpose/write/header.h"
#include "interpose/write/line_batch.h"
#include "interpose/write/windows.h"
#include "interpose/write/writer.h"

extern "C" [[gnu::weak]] int on_exit(void (*)(int, void*), void*) noexcept;  // musl lacks it

namespace tprof::session {

namespace {

// Fills the head of a new ring file, except for its magic.
void fill_head(Head& head, const Process& process, const RankFile& file,
               const ClockAnchor& anchor) {
  const Config& config = session::config();
  head.layout = kRingLayout;
  head.head_size = sizeof(Head);
  copy_text(head.version, kVersion);
  copy_text(head.boot_id, process.boot_id);
  head.pid = process.pid;
  head.pid_namespace = process.pid_namespace;
  head.start_ticks = process.start_ticks;
  copy_text(head.rank_file, file.name);
  copy_text(head.directory, file.directory);
  head.base_mono_ns = anchor.mono_ns;
  head.base_real_ns = anchor.real_ns;
  head.rank_known = process.rank >= 0;
  head.line_pid = process.rank >= 0 ? process.rank : process.pid;
  head.quota = config.quota;
  const bool lines = config.ranks.has(process.rank);
  head.events = lines ? config.events : EventLines::off;
  copy_text(head.ops, config.ops);
  copy_text(head.sizes, config.sizes);
  head.copy_element_size = config.copy_element_size;
  copy_text(head.step_mark, config.step);
  copy_text(head.windows.schedule, config.schedule.text);
  head.windows.files = config.window_files;
  head.functions = kFunctionCount;
  for (std::size_t i = 1; i < kFunctionCount; ++i) {
    copy_text(head.function[i].name, kFunctions[i].name);
    head.function[i].elements = kFunctions[i].elements;
    head.function[i].collective = kFunctions[i].order == Order::collective;
  }
}

// Writes the rank file's first lines into the mapping, so that the rank file can be made from the
// ring file alone. The magic is last: with it, everything is there.
bool write_header(Mapping& mapping, const Text& header) {
  const std::uint64_t at = header.failed() ? 0 : mapping.allocate(header.size());
  if (at == 0) return false;
  std::memcpy(mapping.at<char>(at), header.data(), header.size());
  Head& head = mapping.head();
  head.header = at;
  head.header_bytes = header.size();
  static constinit Progress begin{};  // 16 KiB: too large for a small stack
  begin.written.file[kRankFile].offset = header.size();
  commit_progress(head, begin);
  std::atomic_signal_fence(std::memory_order_release);
  std::memcpy(head.magic, kRingMagic, sizeof head.magic);
  return true;
}

// Constant-initialized, since a session may begin before this library's constructors.
constinit RankFile g_file{};
constinit Process g_process{};
Lock g_lock{LockOrder::start};
bool g_forked = false;            // the tables are still the parent's
std::uint32_t g_last_number = 0;  // a fork does not wipe it
bool g_turned_off = false;

ProcessId g_self{};         // of the session
ProcessId g_forked_from{};  // the traced process that this one, or its parent, was forked from

// How long all ends of the process wait for its files, counted from the first.
constexpr std::uint64_t kPatienceNs = 5'000'000'000;
std::atomic<std::uint64_t> g_waits_until{0};  // 0: no end has begun

// Saves a system call per lock, if a child can never see its parent's number.
bool g_wipes = false;
void remember_process() {
  if (g_wipes) g_wiped_by_fork.process.store(this_process(), std::memory_order_relaxed);
}

bool not_tracing(std::string_view why, std::string_view detail = {}) {
  complain(Trouble::start, "not tracing: ", why, detail);
  return false;
}

void turn_off() {
  g_turned_off = true;
  g_wiped_by_fork.session.store(kOff);
}

// Runs in a forked child before it has other threads: in pthread_atfork's handler or, after a bare
// clone(), at the child's first call.
void leave_parents_session() {
  remember_process();
  resolve::after_fork();
  allocations::after_fork();
  windows::after_fork();
  device::after_fork();
  sites::after_fork();
  memory::after_fork();
  marks::after_fork();
  user::after_fork();
  control::after_fork();
  coverage::after_fork();
  writer::after_fork();
  in_time::after_fork();
  // The files belong to the parent, even if another thread was just making them: the child must not
  // write to them.
  leave_files(g_file);
  g_waits_until.store(0, std::memory_order_relaxed);
  mapping().close();
  if (g_state.started.load(std::memory_order_relaxed)) {
    g_forked_from = g_self;
    g_state.started.store(false, std::memory_order_relaxed);
    g_state.closed.store(false, std::memory_order_relaxed);
    g_forked = true;
  }
  g_wiped_by_fork.begun.store(1, std::memory_order_relaxed);
  g_wiped_by_fork.session.store(g_turned_off ? kOff : ++g_last_number, std::memory_order_release);
}

// Runs in our exit handler. Threads notice the new number at their next call.
void end_session() {
  g_state.exiting_thread.store(syscall(SYS_gettid), std::memory_order_relaxed);
  g_state.closed.store(true, std::memory_order_release);
  resolve::stop_opening();
  if (started()) g_wiped_by_fork.session.store(++g_last_number, std::memory_order_release);
}

// Called once it is known that the process is traced: if not, only that is worth a line.
void say_where_no_ring_is() {
  const char* chosen = config().ring_dir;
  if (chosen[0] != '\0' && g_file.ring_in.path != chosen) {
    return complain(Trouble::room, "no ring file could be made at once in ", chosen,
                    " (TPROF_RING_DIR): choosing another folder");
  }
  if (mapping().in_file()) return;
  complain(Trouble::room, "no ring file in ", g_file.directory,
           ": a kill would lose what is not written yet");
}

// Waits for the writer to close the file, within the time limit.
void close_file() {
  std::uint64_t until = 0;
  const std::uint64_t first = now_ns() + kPatienceNs;
  if (g_waits_until.compare_exchange_strong(until, first)) until = first;
  writer::close(until);
  say_where_no_ring_is();  // the writer may never have got so far
}

// Metrics are only in lines. `tprof run` serves `gpus` itself and removes it from the setting.
MetricsWanted wanted_metrics(const Process& process) {
  const bool lines = mapping().head().events != EventLines::off;
  MetricsWanted wanted = config().metrics;
  if (!lines) wanted.every_ns = 0;
  const bool speaks = process.local_rank <= 0 && process.forked_from.pid == 0;
  if (lines && wanted.gpus && speaks) {
    say("TPROF_METRICS: metrics of GPUs and hosts need `tprof run`: recording the process's only");
  }
  return wanted;
}

// After a chroot the paths may be other files.
void remove_ring_and_snapshot() {
  for (const NamedFile* f : {&g_file.ring, &g_file.snapshot}) {
    if (f->fd >= 0 && file_at(f->path) == f->id) unlink(f->path);
  }
}

// Runs on the writer's thread, so that a hanging file system blocks no other thread.
bool make_files(writer::Files& files) {
  const View view = mapping().view();
  if (create_rank_file(g_file, view.head(), view.header())) {
    left_rings::begin(g_file, g_process);
    files = {g_file.lines.fd, g_file.snapshot.fd};
    say_where_no_ring_is();
    return true;
  }
  turn_off();
  g_state.started.store(false);
  for (NamedFile* f : {&g_file.ring, &g_file.snapshot, &g_file.lines}) drop_file(*f);
  return false;
}

bool fill_mapping(const Process& process, std::string_view libraries) {
  const ClockAnchor anchor = clock_anchor();
  fill_head(mapping().head(), process, g_file, anchor);
  Text header;
  header_lines(header, mapping().view(), config(), process, g_file, anchor.bracket_ns, libraries);
  return write_header(mapping(), header);
}

// Spreads the ranks of a job, so that they don't all use their folder at once.
std::uint32_t delay_ms(const Process& process) {
  constexpr std::int64_t kRanksInOneMs = 10;
  return process.rank < 0 ? 0 : static_cast<std::uint32_t>(process.rank / kRanksInOneMs);
}

// Expensive work is done here and not in the fork: most children (a data loader's workers) never
// get here.
void forget_parents_tables() {
  graphs::forget_all();
  comms::forget_all();
  comms::forget_phases();
}

// The session has its files and its writer. Windows come before timing, since they decide whether
// calls are timed from the beginning.
void begin_rooms(Head& head) {
  resolve::publish(head);
  if (opt_in::memory()) allocations::publish(head);
  windows::begin();
  device::begin(config().timing);
  // Sites are only in lines.
  if (head.events != EventLines::off) sites::begin(config().call_site);
  missed::publish(head);
}

bool start_locked(std::string_view libraries) {
  if (g_forked) forget_parents_tables();
  g_state.config = read_config();
  g_process = {};
  describe_process(config().redact, g_process);
  g_process.forked_from = g_forked_from;
  g_self = {g_process.pid, g_process.start_ns};
  if (!size_allowed(kClosingBytes)) {
    return not_tracing("the file size limit (ulimit -f) is under 64 KiB");
  }
  name_rank_file(config(), g_process, g_file);
  create_ring(config().ring_dir[0] != '\0' ? config().ring_dir : nullptr, g_process, g_file);
  if (!mapping().open(g_file.ring.fd, g_file.ring_in)) {
    drop_file(g_file.ring);
    return not_tracing("no address space for the ring");
  }
  if (!mapping().in_file()) drop_file(g_file.ring);
  if (!fill_mapping(g_process, libraries) ||
      !writer::start(mapping().view(), {make_files, control::follow, remove_ring_and_snapshot},
                     wanted_metrics(g_process), delay_ms(g_process))) {
    mapping().close();
    drop_file(g_file.ring);
    return not_tracing("cannot start the writer thread");
  }
  begin_rooms(mapping().head());
  return true;
}

// Runs from exit(), after the program's own atexit handlers.
[[gnu::destructor]] void close_at_exit() {
  end_session();
  if (!started()) return;
  coverage::note_objects();
  leave();
}

}  // namespace

void begin_once() {
  static std::atomic<bool> handlers{false};
  if (!handlers.exchange(true)) {
    at_fork(nullptr, nullptr, leave_parents_session);
    if (on_exit != nullptr) on_exit([](int status, void*) { note_exit_status(status); }, nullptr);
    // MADV_WIPEONFORK exists since Linux 4.14; without it only the handlers remain.
    g_wipes = madvise(&g_wiped_by_fork, sizeof g_wiped_by_fork, MADV_WIPEONFORK) == 0;
    remember_process();
  }
  const HeldSignals held_signals;  // a handler that makes calls would wait for its own thread
  if (g_wiped_by_fork.begun.exchange(1, std::memory_order_acquire) != 0) {
    const KeepErrno keep_errno;
    while (number() == 0) futex_sleep(g_wiped_by_fork.session, 0);
    return;
  }
  if (g_last_number != 0) {
    leave_parents_session();
  } else {
    g_wiped_by_fork.session.store(++g_last_number, std::memory_order_release);
  }
  futex_wake(g_wiped_by_fork.session);
}

void wake_writer() {
  writer::wake();
}
void late_call() {
  const KeepErrno keep_errno;
  coverage::note_objects();
  close_file();
}

bool to_be_closed() {
  return started() && !closed() && mapping().head().pid == syscall(SYS_getpid);
}
void note_exit_status(int status) {
  if (!to_be_closed()) return;
  mapping().head().exit_status.store(1 + (static_cast<unsigned>(status) & 0xff),
                                     std::memory_order_relaxed);
}
void leave() {
  constexpr std::uint32_t kLastLookMs = 1000;  // to read the devices' last times
  device::end(kLastLookMs);
  close_file();
  windows::end();
}

// Collects the facts before it takes the lock: a thread with the loader's lock (in a library's
// constructor that makes calls) may be waiting for ours.
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
    g_state.started.store(true);
    if (number() == kOff) g_state.started.store(false);  // the writer could not make the files
  }
  writer::wait_for_files();
  // Calls of other threads have only the host's times until then.
  device::settle_in();
  // Last, since it also notes what the others have loaded.
  coverage::note_environment();
  coverage::note_objects();
  return true;
}

}  // namespace tprof::session
