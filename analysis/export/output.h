// The merged file: plain, or gzip as one member that every reader takes.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

namespace tprof::trace_export {

// A piece of the file as it will be written. Pieces are packed in parallel and written in order.
struct Piece {
  std::string bytes;
  std::uint32_t crc = 0;  // of the text
  std::uint64_t text_size = 0;
};

// Fills `piece` with `text`, deflated so that pieces can be put one behind the other (what pigz
// does) if `gzip`. Both keep their room for the next use; what `text` holds afterwards is not said.
void pack(std::string& text, bool gzip, Piece& piece);

// Appears under its name when close() has put everything into it, not before.
class Output {
 public:
  Output(std::filesystem::path file, bool gzip);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output();

  void write(const Piece& piece);
  void close();

 private:
  void put(const void* bytes, std::size_t size);

  std::filesystem::path file_;
  std::filesystem::path part_;
  bool gzip_;
  int fd_;
  std::uint32_t crc_ = 0;
  std::uint64_t text_size_ = 0;
};

}  // namespace tprof::trace_export
