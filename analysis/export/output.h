// Files that the tool writes: plain, or gzip as one member that every reader takes.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tprof::trace_export {

// From here on SIGINT, SIGTERM, SIGHUP and SIGQUIT remove what is unfinished before they end the
// process. To be called before any thread is started.
void remove_unfinished_on_signals();

// Files and folders that go away with this, or when a signal ends the process, unless all are kept.
class Unfinished {
 public:
  Unfinished() = default;
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished();

  // Before it is made, by this process; a folder before the files in it.
  void add(const std::filesystem::path& path);
  // What `made` returns; from 0 on it has made it. No signal comes between.
  int add_made(const std::filesystem::path& path, const std::function<int()>& made);
  void keep();

 private:
  std::vector<std::filesystem::path> paths_;
};

// A piece of the file as it will be written. Pieces are packed in parallel and written in order.
struct Piece {
  std::string bytes;
  std::uint32_t crc = 0;  // of the text
  std::uint64_t text_size = 0;
};

// Fills `piece` with `text`, deflated so that pieces can be put one behind the other (what pigz
// does) if `gzip`. Both keep their room for the next use; what `text` holds afterwards is not said.
void pack(std::string& text, bool gzip, Piece& piece);

// A regular file appears under its name when close() has put everything into it, not before. Into
// what else has that name (a device, a pipe, standard output) it goes as it comes.
class Output {
 public:
  // `name`: "-" is standard output; a symbolic link is followed. Throws BadInput where it is a file
  // that holds something else than a merged trace.
  Output(const std::filesystem::path& name, bool gzip);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output();

  void write(const Piece& piece);
  void close();
  std::uint64_t size() const { return size_; }
  // Until close() it can be given up, and nobody has seen it.
  bool appears_whole() const { return !part_.empty(); }

 private:
  void put(const void* bytes, std::size_t size);
  [[noreturn]] void fail() const;

  std::string name_;
  std::filesystem::path file_;  // both empty where nothing is renamed
  std::filesystem::path part_;
  Unfinished unfinished_;
  bool gzip_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
  std::uint32_t crc_ = 0;
  std::uint64_t text_size_ = 0;
};

}  // namespace tprof::trace_export
