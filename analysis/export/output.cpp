#include "export/output.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "read/error.h"

namespace tprof::trace_export {
namespace {

constexpr int kRawDeflate = -15;  // zlib's window bits without a header: ours is written by hand
constexpr int kMemoryLevel = 8;   // zlib's default

}  // namespace

void pack(std::string& text, bool gzip, Piece& piece) {
  piece.text_size = text.size();
  if (!gzip) {
    piece.bytes.swap(text);
    return;
  }
  auto* input = reinterpret_cast<Bytef*>(text.data());
  const auto size = static_cast<uInt>(text.size());
  piece.crc = static_cast<std::uint32_t>(crc32(0, input, size));
  z_stream z{};
  if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kRawDeflate, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  piece.bytes.resize(deflateBound(&z, size) + 16);  // 16: the empty block of a flush
  z.next_in = input;
  z.avail_in = size;
  z.next_out = reinterpret_cast<Bytef*>(piece.bytes.data());
  z.avail_out = static_cast<uInt>(piece.bytes.size());
  const int result = deflate(&z, Z_SYNC_FLUSH);
  piece.bytes.resize(z.total_out);
  deflateEnd(&z);
  if (result != Z_OK) throw std::runtime_error("zlib: deflate failed");
}

Output::Output(std::filesystem::path file, bool gzip)
    : file_(std::move(file)), part_(file_.string() + ".part"), gzip_(gzip) {
  fd_ = open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) throw read::BadInput(part_, std::strerror(errno));
  const unsigned char header[10] = {0x1f, 0x8b, Z_DEFLATED, 0, 0, 0, 0, 0, 0, 0xff};
  if (gzip_) put(header, sizeof header);
}

Output::~Output() {
  if (fd_ < 0) return;
  ::close(fd_);
  unlink(part_.c_str());
}

void Output::put(const void* bytes, std::size_t size) {
  const auto* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t n = ::write(fd_, at, size);
    if (n < 0) {
      if (errno == EINTR) continue;
      throw read::BadInput(part_, std::strerror(errno));
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
  if (::close(fd) != 0) throw read::BadInput(part_, std::strerror(errno));
  std::filesystem::rename(part_, file_);
}

}  // namespace tprof::trace_export
