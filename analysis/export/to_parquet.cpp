#include "export/to_parquet.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "children/child.h"
#include "export/tables.h"
#include "text/text.h"

namespace tprof::trace_export {

extern const std::string_view kToParquet;  // to_parquet.py

namespace {

constexpr int kNotFound = 127;  // a shell's word for a command that is not there

// A file in memory, so that neither side waits for the other.
class Memory {
 public:
  Memory() : fd_(memfd_create("tprof-parquet", MFD_CLOEXEC)) {
    if (fd_ < 0) throw read::BadInput(fmt::format("memfd_create: {}", std::strerror(errno)));
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { close(fd_); }

  int fd() const { return fd_; }
  void write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t n = ::write(fd_, text.data(), text.size());
      if (n < 0) throw read::BadInput(std::strerror(errno));
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    lseek(fd_, 0, SEEK_SET);
  }
  std::string last_line() const {
    std::string text(static_cast<std::size_t>(lseek(fd_, 0, SEEK_END)), '\0');
    const ssize_t n = pread(fd_, text.data(), text.size(), 0);
    text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
    while (text.ends_with('\n')) text.pop_back();
    return text::printable(text.substr(text.rfind('\n') + 1));
  }

 private:
  int fd_;
};

struct Ended {
  int code = 0;  // -1: by a signal
  std::string said;
};

Ended run_python(const std::filesystem::path& folder, std::string_view files) {
  const std::string script(kToParquet);
  const Memory input;
  const Memory output;
  input.write(files);
  children::Child child(
      [&] {
        if (chdir(folder.c_str()) != 0) return errno;
        dup2(input.fd(), STDIN_FILENO);
        dup2(output.fd(), STDOUT_FILENO);
        dup2(output.fd(), STDERR_FILENO);
        execlp("python3", "python3", "-c", script.c_str(), nullptr);
        return kNotFound;
      },
      children::Child::Orphan::dies);
  if (child.pid() < 0) throw read::BadInput(fmt::format("fork: {}", std::strerror(errno)));
  const int status = child.wait();
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output.last_line()};
}

}  // namespace

void require_pyarrow() {
  const Ended ended = run_python("/", "[]");
  if (ended.code == 0) return;
  throw read::BadInput(fmt::format(
      "--parquet: pyarrow writes these files, and the first python3 in PATH has none ({}): pip "
      "install pyarrow, or put the folder of a Python that has it first in PATH",
      ended.code == kNotFound ? "there is no python3" : ended.said));
}

void to_parquet(const std::filesystem::path& folder, const std::string& files) {
  const Ended ended = run_python(folder, files);
  if (ended.code == 0) return;
  throw CantWrite(
      folder, ended.code > 0 ? ended.said : "python3 was killed while it made the Parquet files");
}

}  // namespace tprof::trace_export
