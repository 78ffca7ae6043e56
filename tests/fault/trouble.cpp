// Preloaded behind libtprof.so: makes what the tracer asks of the system fail, or kills the process
// while it is asked. Only calls about files below TPROF_OUTPUT_DIR are touched.
//
//   TROUBLE=kill:N         SIGKILL at the N-th moment: before, in the middle of and after each call
//   TROUBLE=snapshot:N     the same for the writes to the snapshot alone
//   TROUBLE=map            a file can't be mapped shared, as on some network file systems
//   TROUBLE=map,fallocate  nor can its blocks be allocated
//   TROUBLE=pages          pages have 64 KiB, as many kernels for aarch64 have them: nothing that
//                          begins between two can be mapped
//   TROUBLE=signals        a profiler's signals come all the time: fallocate, which they interrupt,
//                          never succeeds while they are not blocked
//   TROUBLE=stall          only the first write returns, as with a file server that is gone
//   TROUBLE=stall:TEXT     no write of this text returns; STALLED names a file that is made before
//                          one stands
//   TROUBLE=naps           how long the writer's thread means to sleep goes to the file NAPS, in ms
//   TROUBLE=places         PLACES says on which file systems these folders are ("output=nfs
//                          shm=small tmpdir=ext4 tmp=ext4"): nfs, overlay, ext4, tmpfs (with 8 GiB
//                          free), small (a tmpfs with less than 1 GiB), filling (with 8 GiB the
//                          first two times)
//   TROUBLE=hours:N        the wall clock is that many hours behind
//   TROUBLE=quota:N        the disk quota is used up from the N-th write on
//   TROUBLE=windows        windows' files have no room
//
// trouble_realtime_step_ns is added to CLOCK_REALTIME, trouble_monotonic_step_ns to
// CLOCK_MONOTONIC.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>

extern "C" {
std::atomic<std::int64_t> trouble_realtime_step_ns{0};
std::atomic<std::int64_t> trouble_monotonic_step_ns{0};
}

namespace {

std::string_view trouble() {
  const char* text = std::getenv("TROUBLE");
  return text == nullptr ? std::string_view() : std::string_view(text);
}

bool wants(std::string_view what) {
  return trouble().find(what) != std::string_view::npos;
}

// Returns the N of "what:N"; 0 if there is none.
int number_of(std::string_view what) {
  const std::string_view text = trouble();
  return text.starts_with(what) ? std::atoi(text.data() + what.size()) : 0;
}

bool ours(std::string_view path) {
  const char* directory = std::getenv("TPROF_OUTPUT_DIR");
  return directory != nullptr && path.starts_with(directory);
}

template <std::size_t N>
std::string_view path_of(int fd, char (&path)[N]) {
  char link[64];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, N);
  return {path, n > 0 ? static_cast<std::size_t>(n) : 0};
}

bool ours(int fd) {
  char path[4096];
  return ours(path_of(fd, path));
}

// Returns what PLACES says of the folder; empty if it says nothing.
std::string_view place_of(std::string_view path) {
  const char* places = std::getenv("PLACES");
  const char* temporary = std::getenv("TMPDIR");
  if (places == nullptr) return {};
  const std::string_view name = ours(path)                                            ? "output="
                                : temporary != nullptr && path.starts_with(temporary) ? "tmpdir="
                                : path.starts_with("/dev/shm")                        ? "shm="
                                : path.starts_with("/tmp")                            ? "tmp="
                                                                                      : "?";
  const std::string_view all = places;
  const std::size_t at = all.find(name);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = all.substr(at + name.size());
  return rest.substr(0, rest.find(' '));
}

void answer_for(std::string_view path, struct statfs* fs) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  static std::atomic<int> asked{0};
  const std::string_view place = place_of(path);
  if (place.empty()) return;
  fs->f_type = place == "nfs"       ? 0x6969
               : place == "overlay" ? 0x794c7630
               : place == "ext4"    ? 0xef53
                                    : 0x01021994;
  if (fs->f_type != 0x01021994) return;
  fs->f_bsize = 4096;
  fs->f_blocks = 16 * kGiB / 4096;
  const bool room = place == "tmpfs" || (place == "filling" && asked++ < 2);
  fs->f_bavail = room ? 8 * kGiB / 4096 : kGiB / 4096 - 1;
}

// True if a write of this text does not return.
bool stalls(std::string_view text) {
  constexpr std::string_view kStall = "stall:";
  if (!trouble().starts_with(kStall)) return false;
  return text.find(trouble().substr(kStall.size())) != std::string_view::npos;
}

[[noreturn]] void stand() {
  if (const char* file = std::getenv("STALLED")) creat(file, 0666);
  for (;;) pause();
}

bool in_thread(std::string_view wanted) {
  char name[16] = {};
  prctl(PR_GET_NAME, name);
  return name == wanted;
}

void note_nap(long operation, const timespec* timeout) {
  if (operation != FUTEX_WAIT_PRIVATE || timeout == nullptr || !in_thread("tprof")) return;
  static const int file = creat(std::getenv("NAPS"), 0666);
  dprintf(file, "%ld\n", timeout->tv_sec * 1000 + timeout->tv_nsec / 1'000'000);
}

void moment(const char* what = "kill:") {
  static std::atomic<int> moments{0};
  const int last = number_of(what);
  if (last != 0 && ++moments == last) raise(SIGKILL);
}

template <typename F>
F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

template <typename F>
auto between_moments(F&& f) {
  moment();
  const auto result = f();
  moment();
  return result;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = va_arg(arguments, mode_t);
  va_end(arguments);
  const auto real = next<int(const char*, int, ...)>("open");
  if (!ours(path)) return real(path, flags, mode);
  return between_moments([&] { return real(path, flags, mode); });
}

int statfs(const char* path, struct statfs* fs) noexcept {
  const int result = next<int(const char*, struct statfs*)>("statfs")(path, fs);
  if (result == 0 && wants("places")) answer_for(path, fs);
  return result;
}

int fstatfs(int fd, struct statfs* fs) noexcept {
  const int result = next<int(int, struct statfs*)>("fstatfs")(fd, fs);
  char path[4096];
  if (result == 0 && wants("places")) answer_for(path_of(fd, path), fs);
  return result;
}

int unlink(const char* path) noexcept {
  const auto real = next<int(const char*)>("unlink");
  if (!ours(path)) return real(path);
  return between_moments([&] { return real(path); });
}

int rename(const char* from, const char* to) noexcept {
  const auto real = next<int(const char*, const char*)>("rename");
  if (!ours(from)) return real(from, to);
  return between_moments([&] { return real(from, to); });
}

int ftruncate(int fd, off_t size) noexcept {
  const auto real = next<int(int, off_t)>("ftruncate");
  if (!ours(fd)) return real(fd, size);
  return between_moments([&] { return real(fd, size); });
}

int fallocate(int fd, int mode, off_t at, off_t size) {
  const auto real = next<int(int, int, off_t, off_t)>("fallocate");
  if (!ours(fd)) return real(fd, mode, at, size);
  if (wants("fallocate")) {
    errno = EOPNOTSUPP;
    return -1;
  }
  sigset_t held_back;
  if (wants("signals") && sigprocmask(SIG_BLOCK, nullptr, &held_back) == 0 &&
      sigismember(&held_back, SIGPROF) == 0) {
    errno = EINTR;
    return -1;
  }
  return between_moments([&] { return real(fd, mode, at, size); });
}

void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t at) noexcept {
  const auto real = next<void*(void*, size_t, int, int, int, off_t)>("mmap");
  if (wants("pages")) {
    constexpr std::uintptr_t kPage = 65536;
    const auto wanted = reinterpret_cast<std::uintptr_t>(address) | static_cast<std::uintptr_t>(at);
    if (wanted % kPage != 0) {
      errno = EINVAL;
      return MAP_FAILED;
    }
    if (address == nullptr) {
      void* from = real(nullptr, size + kPage, protection, flags, fd, at);
      const auto begin = reinterpret_cast<std::uintptr_t>(from);
      return from == MAP_FAILED ? from
                                : reinterpret_cast<void*>((begin + kPage - 1) & ~(kPage - 1));
    }
  }
  if (fd < 0 || (flags & MAP_SHARED) == 0 || !ours(fd)) {
    return real(address, size, protection, flags, fd, at);
  }
  if (wants("map")) {
    errno = ENODEV;
    return MAP_FAILED;
  }
  return between_moments([&] { return real(address, size, protection, flags, fd, at); });
}

ssize_t pwrite(int fd, const void* from, size_t n, off_t at) {
  const auto real = next<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  if (!ours(fd)) return real(fd, from, n, at);
  static std::atomic<int> writes{0};
  const int nth = ++writes;
  while (trouble() == "stall" && nth > 1) pause();
  if (stalls({static_cast<const char*>(from), n})) stand();
  const int first_refused = number_of("quota:");
  if (first_refused != 0 && nth >= first_refused) {
    errno = EDQUOT;
    return -1;
  }
  char path[4096];
  if (wants("windows") && path_of(fd, path).ends_with(".part")) {
    errno = ENOSPC;
    return -1;
  }
  const bool snapshot = wants("snapshot:") && path_of(fd, path).ends_with(".snapshot");
  const char* what = snapshot ? "snapshot:" : "kill:";
  moment(what);
  const ssize_t half = real(fd, from, n / 2, at);
  moment(what);
  if (half < 0) return half;
  const ssize_t rest = real(fd, static_cast<const char*>(from) + half,
                            n - static_cast<std::size_t>(half), at + half);
  moment(what);
  return rest < 0 ? rest : half + rest;
}

long syscall(long number, ...) noexcept {
  static const auto real = next<long(long, ...)>("syscall");
  va_list arguments;
  va_start(arguments, number);
  long a[6];
  for (long& argument : a) argument = va_arg(arguments, long);
  va_end(arguments);
  if (number == SYS_futex && wants("naps")) note_nap(a[1], reinterpret_cast<timespec*>(a[3]));
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static const auto real = next<int(clockid_t, timespec*)>("clock_gettime");
  const int result = real(clock, time);
  static const std::int64_t behind = number_of("hours:") * 3'600'000'000'000;
  const auto& step = clock == CLOCK_REALTIME ? trouble_realtime_step_ns : trouble_monotonic_step_ns;
  if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) return result;
  const std::int64_t ns = time->tv_sec * 1'000'000'000 + time->tv_nsec +
                          step.load(std::memory_order_relaxed) -
                          (clock == CLOCK_REALTIME ? behind : 0);
  time->tv_sec = ns / 1'000'000'000;
  time->tv_nsec = ns % 1'000'000'000;
  return result;
}

}  // extern "C"
