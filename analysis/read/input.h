// The bytes of a file as they were before it was compressed: by gzip here, by others in the program
// that did it, as far as that is installed.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string_view>

#include "children/child.h"

namespace tprof::read {

// How the name of a compressed file may end, behind ".json".
inline constexpr std::string_view kPackedEndings[] = {".gz", ".zst", ".xz", ".bz2", ".lz4"};

class Input {
 public:
  // Throws BadInput, also for a file that is packed in a way which nothing here undoes.
  explicit Input(const std::filesystem::path& file);

  // Returns 0 at the end. Throws BadInput.
  std::size_t read(char* to, std::size_t size);
  bool packed() const { return program_ != nullptr || gzdirect(file_.get()) == 0; }
  // True if it is compressed and ended before its compressed data did.
  bool cut_short() const { return cut_short_; }

 private:
  struct Close {
    void operator()(gzFile f) const { gzclose(f); }
  };
  void unpack(int packed, const char* program);

  std::filesystem::path path_;
  children::Child child_;
  std::unique_ptr<gzFile_s, Close> file_;  // closed before the child is waited for
  const char* program_ = nullptr;          // that the child is; null: none
  bool cut_short_ = false;
};

}  // namespace tprof::read
