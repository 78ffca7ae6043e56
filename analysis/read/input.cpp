#include "read/input.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "read/error.h"

namespace tprof::read {
namespace {

// How a file begins that a program makes, which also undoes it. No program: it
// holds other files.
struct Packing {
  std::string_view begin;
  std::string_view what;
  const char* program;
};
constexpr Packing kPackings[] = {
    {"\x28\xb5\x2f\xfd", "zstd", "zstd"},
    {{"\xfd\x37zXZ", 5}, "xz", "xz"},
    {"BZh", "bzip2", "bzip2"},
    {"\x04\x22\x4d\x18", "lz4", "lz4"},
    {"PK\x03\x04", "a zip archive", nullptr},
    {"7z\xbc\xaf", "a 7-Zip archive", nullptr},
};

constexpr int kNotThere = 127;

// A pipe that can be read only once is never looked into.
std::string first_bytes(int fd) {
  char first[8] = {};
  const ssize_t got = pread(fd, first, sizeof first, 0);
  return {first, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

}  // namespace

Input::Input(const std::filesystem::path& file) : path_(file) {
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw BadInput(file, std::strerror(errno));
  const std::string first = first_bytes(fd);
  const auto* packing =
      std::ranges::find_if(kPackings, [&](const Packing& p) { return first.starts_with(p.begin); });
  if (packing == std::end(kPackings)) {
    file_.reset(gzdopen(fd, "rb"));
    if (!file_) close(fd);
  } else if (packing->program == nullptr) {
    close(fd);
    throw BadInput(file, std::string(packing->what) + ": take the trace out of it first");
  } else {
    unpack(fd, packing->program);
  }
  if (!file_) throw BadInput(file, std::strerror(ENOMEM));
  // There may be 100,000 short files, each with three times as much room.
  std::error_code not_a_file;
  const bool is_short = std::filesystem::file_size(file, not_a_file) < 1U << 17 && !not_a_file;
  gzbuffer(file_.get(), is_short ? 1U << 14 : 1U << 17);
}

void Input::unpack(int packed, const char* program) {
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) {
    close(packed);
    throw BadInput(path_, std::strerror(errno));
  }
  child_ = children::Child(
      [&] {
        const int nowhere = open("/dev/null", O_WRONLY);
        if (dup2(packed, STDIN_FILENO) >= 0 && dup2(out[1], STDOUT_FILENO) >= 0 && nowhere >= 0 &&
            dup2(nowhere, STDERR_FILENO) >= 0) {
          execlp(program, program, "-dc", nullptr);
        }
        _exit(kNotThere);  // other threads may hold any lock
        return 0;
      },
      children::Child::Orphan::dies);
  close(packed);
  close(out[1]);
  program_ = program;
  file_.reset(gzdopen(out[0], "rb"));
  if (!file_) close(out[0]);
}

std::size_t Input::read(char* to, std::size_t size) {
  const int got =
      gzread(file_.get(), to, static_cast<unsigned>(std::min(size, std::size_t{1} << 30)));
  int code = Z_OK;
  const char* what = gzerror(file_.get(), &code);
  if (got < 0) {
    throw BadInput(path_, static_cast<std::uint64_t>(gztell(file_.get())),
                   code == Z_ERRNO ? std::strerror(errno) : std::string("gzip: ") + what);
  }
  if (got > 0) return static_cast<std::size_t>(got);
  cut_short_ = code == Z_BUF_ERROR;
  if (child_.pid() <= 0) return 0;
  const int status = child_.wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotThere) {
    throw BadInput(path_, std::string("compressed by ") + program_ +
                              ", which is not installed here: unpack it with " + program_ +
                              " -d where it is");
  }
  cut_short_ = cut_short_ || status != 0;
  return 0;
}

}  // namespace tprof::read
