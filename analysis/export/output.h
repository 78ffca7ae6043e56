// Files that the tool writes: plain, or gzip as one member that every reader takes.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tprof::trace_export {

// Makes SIGINT, SIGTERM, SIGHUP and SIGQUIT remove what is unfinished before they end the process.
// Has to be called before any thread is started.
void remove_unfinished_on_signals();

// Files and folders that are removed with this object, or when a signal ends the process, unless
// keep() is called.
class Unfinished {
 public:
  Unfinished() = default;
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished();

  // Has to be called before this process makes the path, and for a folder before the files in it.
  void add(const std::filesystem::path& path);
  // Returns what `made` returns; from 0 on it has made the path. No signal comes between.
  int add_made(const std::filesystem::path& path, const std::function<int()>& made);
  void keep();

 private:
  std::vector<std::filesystem::path> paths_;
};

// A piece of the file as it will be written. Pieces are packed in parallel and written in order.
struct Piece {
  std::string_view bytes;
  std::uint32_t crc = 0;  // of the text
  std::uint64_t text_size = 0;
  std::string packed{};
};

// Fills `piece` with `text`, which has to stay until the piece is written. With `gzip` it is
// deflated so that pieces can be put one after the other, as pigz does.
void pack(std::string_view text, bool gzip, Piece& piece);

// A regular file gets its name in close(), when everything is in it, and not before. Anything else
// with that name (a device, a pipe, standard output) is written to directly.
class Output {
 public:
  // The name "-" is standard output. Follows symbolic links. Throws BadInput for a file that holds
  // anything but a merged trace.
  Output(const std::filesystem::path& name, bool gzip);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output();

  void write(const Piece& piece);
  void close();
  std::uint64_t size() const { return size_; }
  // True if the output can be given up before close() without anybody having seen it.
  bool appears_whole() const { return !part_.empty(); }

 private:
  void put(const void* bytes, std::size_t size);
  [[noreturn]] void fail() const;

  std::string name_;
  std::filesystem::path file_;  // both are empty if nothing is renamed
  std::filesystem::path part_;
  Unfinished unfinished_;
  bool gzip_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
  std::uint32_t crc_ = 0;
  std::uint64_t text_size_ = 0;
};

}  // namespace tprof::trace_export
