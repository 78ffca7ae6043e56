#include "export/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <csignal>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "read/error.h"
#include "read/load.h"

namespace tprof::trace_export {
namespace {

constexpr int kRawDeflate = -15;  // zlib's window bits without a header: ours is written by hand
constexpr int kMemoryLevel = 8;   // zlib's default

bool is_standard_output(const struct stat& file) {
  struct stat out;
  return fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == file.st_dev && out.st_ino == file.st_ino;
}

// Follows links to the file that they lead to, which may not be there yet.
std::filesystem::path followed(std::filesystem::path file) {
  while (std::filesystem::is_symlink(std::filesystem::symlink_status(file))) {
    file = file.parent_path() / std::filesystem::read_symlink(file);
  }
  return file;
}

std::mutex g_lock;
std::vector<std::filesystem::path> g_unfinished;

// Runs in a thread of its own, where any function may be called. Keeps the lock, so that nothing
// new is begun.
[[noreturn]] void end_by(int signal) {
  g_lock.lock();
  std::error_code ignored;
  for (auto path = g_unfinished.rbegin(); path != g_unfinished.rend(); ++path) {
    std::filesystem::remove(*path, ignored);
  }
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
    // A signal that is ignored (nohup, a shell's background job) stays ignored.
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

void Unfinished::add(const std::filesystem::path& path) {
  add_made(path, [] { return 0; });
}

int Unfinished::add_made(const std::filesystem::path& path, const std::function<int()>& made) {
  const std::lock_guard guard(g_lock);
  const int result = made();
  if (result < 0) return result;
  g_unfinished.push_back(path);
  paths_.push_back(path);
  return result;
}

Unfinished::~Unfinished() {
  std::error_code ignored;
  for (auto path = paths_.rbegin(); path != paths_.rend(); ++path) {
    std::filesystem::remove(*path, ignored);
  }
  keep();
}

void Unfinished::keep() {
  const std::lock_guard guard(g_lock);
  for (const std::filesystem::path& path : paths_) std::erase(g_unfinished, path);
  paths_.clear();
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

Output::Output(const std::filesystem::path& name, bool gzip)
    : name_(name == "-" ? "standard output" : name.string()), gzip_(gzip) {
  struct stat there;
  const bool exists = name != "-" && stat(name.c_str(), &there) == 0;
  if (name != "-" && !exists && errno != ENOENT) fail();
  if (name == "-" || (exists && is_standard_output(there))) {
    fd_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  } else if (exists && !S_ISREG(there.st_mode)) {
    fd_ = open(name.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    if (exists && there.st_size != 0 && !read::beginning_of(name).merged) {
      throw read::BadInput(name, "is no merged trace, so it is not replaced: give another name");
    }
    file_ = followed(name);
    part_ = file_.string() + ".part";
    fd_ = unfinished_.add_made(
        part_, [&] { return open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666); });
  }
  if (fd_ < 0) fail();
  const unsigned char header[10] = {0x1f, 0x8b, Z_DEFLATED, 0, 0, 0, 0, 0, 0, 0xff};
  if (gzip_) put(header, sizeof header);
}

Output::~Output() {
  if (fd_ >= 0) ::close(fd_);
}

void Output::fail() const {
  const int error = errno;
  throw read::not_written(name_, error);
}

void Output::put(const void* bytes, std::size_t size) {
  const auto* at = static_cast<const char*>(bytes);
  size_ += size;
  while (size > 0) {
    const ssize_t n = ::write(fd_, at, size);
    if (n < 0) {
      if (errno == EINTR) continue;
      fail();
    }
    at += n;
    size -= static_cast<std::size_t>(n);
  }
}

void Output::write(const Piece& piece) {
  put(piece.bytes.data(), piece.bytes.size());
  crc_ = static_cast<std::uint32_t>(
      crc32_combine(crc_, piece.crc, static_cast<z_off_t>(piece.text_size)));
  text_size_ += piece.text_size;
}

void Output::close() {
  if (gzip_) {
    // An empty last block, then checksum and size, little-endian (RFC 1952).
    const auto size = static_cast<std::uint32_t>(text_size_);
    unsigned char trailer[10] = {3, 0};
    for (int i = 0; i < 4; ++i) {
      trailer[2 + i] = static_cast<unsigned char>(crc_ >> (8 * i));
      trailer[6 + i] = static_cast<unsigned char>(size >> (8 * i));
    }
    put(trailer, sizeof trailer);
  }
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0) fail();
  if (part_.empty()) return;
  std::error_code error;
  std::filesystem::rename(part_, file_, error);
  if (error) throw read::not_written(name_, error.value());
  unfinished_.keep();
}

}  // namespace tprof::trace_export
