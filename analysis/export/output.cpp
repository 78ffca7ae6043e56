#include "export/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "read/error.h"
#include "text/print.h"

namespace tprof::trace_export {
namespace fs = std::filesystem;

namespace {

constexpr int kRawDeflate = -15;  // zlib's window bits without a header: ours is written by hand
constexpr int kMemoryLevel = 8;   // zlib's default
constexpr std::size_t kCollectedBytes = std::size_t{1} << 20;

bool is_standard_output(const struct stat& file) {
  struct stat out;
  return fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == file.st_dev && out.st_ino == file.st_ino;
}

// Follows links to their target, which may not exist yet.
fs::path followed(fs::path file) {
  while (fs::is_symlink(fs::symlink_status(file))) {
    file = file.parent_path() / fs::read_symlink(file);
  }
  return file;
}

constexpr const char* kThere = "exists, and is not replaced: give another name";

bool is_empty_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(fs::symlink_status(path, error)) && fs::is_empty(path, error);
}

// Without RENAME_NOREPLACE, a file that gets the name just before the rename is replaced.
bool rename_to_new(const fs::path& from, const fs::path& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno == EEXIST && is_empty_folder(to)) return rename(from.c_str(), to.c_str()) == 0;
  if (errno != EINVAL && errno != ENOSYS) return false;
  struct stat there;
  if (lstat(to.c_str(), &there) == 0 && !is_empty_folder(to)) {
    errno = EEXIST;
    return false;
  }
  return rename(from.c_str(), to.c_str()) == 0;
}

std::mutex g_lock;
std::vector<fs::path> g_unfinished;

// Others may still create files in a folder meanwhile.
void remove_whole(const fs::path& path) {
  std::error_code ignored;
  for (int tries = 0; tries < 100 && fs::exists(fs::symlink_status(path, ignored)); ++tries) {
    fs::remove_all(path, ignored);
  }
}

// Runs in its own thread, where any function may be called. Keeps the lock, so that nothing new is
// begun or published.
[[noreturn]] void end_by(int signal) {
  g_lock.lock();
  std::ranges::for_each(g_unfinished, remove_whole);
  std::signal(signal, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  raise(signal);
  std::_Exit(128 + signal);
}

}  // namespace

void remove_unfinished_on_signals() {
  sigset_t ending;
  sigemptyset(&ending);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    // An ignored signal (nohup, a shell's background job) stays ignored.
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) {
      sigaddset(&ending, signal);
    }
  }
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  std::thread([ending] {
    int signal = 0;
    if (sigwait(&ending, &signal) == 0) end_by(signal);
  }).detach();
}

int Unfinished::make(const fs::path& path, const std::function<int()>& made) {
  const std::lock_guard guard(g_lock);
  const int result = made();
  if (result >= 0) g_unfinished.push_back(path_ = path);
  return result;
}

bool Unfinished::publish(const std::function<bool()>& renamed) {
  const std::lock_guard guard(g_lock);
  if (!renamed()) return false;
  std::erase(g_unfinished, std::exchange(path_, {}));
  return true;
}

Unfinished::~Unfinished() {
  if (path_.empty()) return;
  const std::lock_guard guard(g_lock);
  remove_whole(path_);
  std::erase(g_unfinished, path_);
}

void pack(std::string_view text, bool gzip, Piece& piece) {
  piece.text_size = text.size();
  piece.bytes = text;
  if (!gzip) return;
  auto* input = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // only read
  const auto size = static_cast<uInt>(text.size());
  piece.crc = static_cast<std::uint32_t>(crc32(0, input, size));
  z_stream z{};
  if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kRawDeflate, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  piece.packed.resize(deflateBound(&z, size) + 16);  // 16: the empty block of a flush
  z.next_in = input;
  z.avail_in = size;
  z.next_out = reinterpret_cast<Bytef*>(piece.packed.data());
  z.avail_out = static_cast<uInt>(piece.packed.size());
  const int result = deflate(&z, Z_SYNC_FLUSH);
  piece.bytes = std::string_view(piece.packed).substr(0, z.total_out);
  deflateEnd(&z);
  if (result != Z_OK) throw std::runtime_error("zlib: deflate failed");
}

Output::Output(const fs::path& name, bool gzip,
               const std::function<void(const fs::path&)>& replaces)
    : name_(name == "-" ? "standard output" : name.string()), gzip_(gzip) {
  struct stat there;
  const bool exists = name != "-" && stat(name.c_str(), &there) == 0;
  if (name != "-" && !exists && errno != ENOENT) fail();
  if (name == "-" || (exists && is_standard_output(there))) {
    fd_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  } else if (exists && !S_ISREG(there.st_mode)) {
    fd_ = open(name.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    if (exists && there.st_size != 0 && replaces) replaces(name);
    file_ = followed(name);
    part_ = file_.string() + ".part";
    fd_ = unfinished_.make(
        part_, [&] { return open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666); });
  }
  if (fd_ < 0) fail();
  if (gzip_) put_bytes({"\x1f\x8b\x08\0\0\0\0\0\0\xff", 10});
}

Output::~Output() {
  if (fd_ >= 0) ::close(fd_);
}

void Output::fail() const {
  const int error = errno;
  throw read::not_written(name_, error);
}

void Output::put_bytes(std::string_view bytes) {
  size_ += bytes.size();
  if (!text::write_all(fd_, bytes)) fail();
}

void Output::write(const Piece& piece) {
  put_bytes(piece.bytes);
  crc_ = static_cast<std::uint32_t>(
      crc32_combine(crc_, piece.crc, static_cast<z_off_t>(piece.text_size)));
  text_size_ += piece.text_size;
}

void Output::put(std::string_view text) {
  text_ += text;
  if (text_.size() >= kCollectedBytes) flush();
}

void Output::flush() {
  Piece piece;
  pack(text_, gzip_, piece);
  write(piece);
  text_.clear();
}

void Output::close() {
  if (!text_.empty()) flush();
  if (gzip_) {
    // An empty last block, then checksum and size, little-endian (RFC 1952).
    const auto size = static_cast<std::uint32_t>(text_size_);
    std::string trailer = {3, 0};
    for (const std::uint32_t n : {crc_, size}) {
      for (int i = 0; i < 4; ++i) trailer += static_cast<char>(n >> (8 * i));
    }
    put_bytes(trailer);
  }
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0) fail();
  if (part_.empty()) return;
  if (!unfinished_.publish([&] { return rename(part_.c_str(), file_.c_str()) == 0; })) fail();
}

NewOutput::NewOutput(const fs::path& name, Kind kind)
    : name_(name.has_filename() ? name : name.parent_path()), part_(name_.string() + ".part") {
  if (name == "-") {
    throw read::BadInput(name, fmt::format("the output is a {}, not standard output",
                                           kind == Kind::file ? "file" : "folder"));
  }
  std::error_code error;
  const bool exists = fs::exists(fs::symlink_status(name_, error));
  if (exists && !(kind == Kind::folder && is_empty_folder(name_))) {
    throw read::BadInput(
        name_, kind == Kind::file ? kThere : "exists, and is not replaced: give an empty folder");
  }
  const int made = unfinished_.make(part_, [&] {
    return kind == Kind::folder
               ? mkdir(part_.c_str(), 0777)
               : open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  });
  if (made < 0) {
    if (errno != EEXIST) throw read::not_written(name_, errno);
    throw read::BadInput(part_,
                         "exists: another export is writing it, or was killed; then delete it");
  }
  if (kind == Kind::file) close(made);
}

void NewOutput::publish() {
  if (unfinished_.publish([&] { return rename_to_new(part_, name_); })) return;
  throw read::BadInput(name_,
                       errno == EEXIST || errno == ENOTEMPTY ? kThere : std::strerror(errno));
}

}  // namespace tprof::trace_export
