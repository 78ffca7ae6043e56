// Files and folders that the tool writes. They get their names when they are complete, and not
// before.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "interpose/base/not_copied.h"

namespace tprof::trace_export {

// Makes SIGINT, SIGTERM, SIGHUP and SIGQUIT remove what is unfinished before they end the process.
// Has to be called before any thread is started.
void remove_unfinished_on_signals();

// A file, or a folder with all that is in it. It is removed with this object, or when a signal ends
// the process, unless it is published.
class Unfinished : NotCopied {
 public:
  ~Unfinished();

  // Returns what `made` returns; from 0 on it has made the path. No signal comes between.
  int make(const std::filesystem::path& path, const std::function<int()>& made);
  // The same for what gives the path its name.
  bool publish(const std::function<bool()>& renamed);

 private:
  std::filesystem::path path_;
};

// A piece of a file as it will be written. Pieces are packed in parallel and written in order.
struct Piece {
  std::string_view bytes;
  std::uint32_t crc = 0;  // of the text
  std::uint64_t text_size = 0;
  std::string packed{};
};

// Fills `piece` with `text`, which has to stay until the piece is written. With `gzip` it is
// deflated so that pieces can be put one after the other, as pigz does.
void pack(std::string_view text, bool gzip, Piece& piece);

// A file, plain or as one member of gzip, which every reader takes. Anything but a regular file (a
// device, a pipe, standard output) is written to directly.
class Output : NotCopied {
 public:
  // The name "-" is standard output. Follows symbolic links. `replaces` may refuse to replace a
  // file that is not empty: it throws.
  Output(const std::filesystem::path& name, bool gzip,
         const std::function<void(const std::filesystem::path&)>& replaces = {});
  ~Output();

  void write(const Piece& piece);
  void put(std::string_view text);  // collects it to pieces
  void close();
  std::uint64_t size() const { return size_; }

 private:
  void flush();
  void put_bytes(std::string_view bytes);
  [[noreturn]] void fail() const;

  std::string name_;
  std::filesystem::path file_;  // both are empty if nothing is renamed
  std::filesystem::path part_;
  Unfinished unfinished_;
  bool gzip_;
  int fd_ = -1;
  std::string text_{};
  std::uint64_t size_ = 0;
  std::uint32_t crc_ = 0;
  std::uint64_t text_size_ = 0;
};

// A file or a folder that replaces nothing. It is made, empty, as part().
class NewOutput {
 public:
  enum class Kind { file, folder };
  // Throws BadInput if something has its name already. An empty folder may have it if a folder is
  // to be made.
  NewOutput(const std::filesystem::path& name, Kind kind);

  const std::filesystem::path& part() const { return part_; }
  // Gives it its name. Throws BadInput if something else got the name meanwhile.
  void publish();

 private:
  std::filesystem::path name_;
  std::filesystem::path part_;
  Unfinished unfinished_;
};

}  // namespace tprof::trace_export
