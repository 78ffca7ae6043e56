// The files that windows have of their own (TPROF_WINDOW_FILES). One caller at a time.
#pragma once

#include <cstddef>

#include "interpose/base/disk_space.h"
#include "interpose/lines/window_lines.h"

namespace tprof {

class WindowFiles {
 public:
  explicit WindowFiles(const View& view) : view_(view) {}

  // Texts for the drain, which follow in the files at the same places in Progress. Null: there are
  // none.
  Text* texts() { return view_.head().windows.files ? text_ : nullptr; }
  void clear();
  bool empty() const;

  // Writes the texts, and moves the offsets of `next`. It makes a file that `next` has and that
  // does not exist yet. False: not all could be written; cut_back() is next.
  bool write(Progress& next);
  // Cuts the files back to what is whole. `next` is what could not be written.
  void cut_back(const Progress& committed, const Progress& next);

  // Gives a file its end and its name. If that fails it keeps its unfinished name: readers know
  // both.
  void complete(const WindowFile& file, std::size_t i);

 private:
  struct Path {
    char text[1300];
  };
  void put_path(Path& path, const WindowFile& file, std::string_view end) const;
  bool create(WindowFile& file, std::size_t i);

  View view_;
  OwnFile file_[kWindowFiles];
  Text text_[kWindowFiles];
  Text first_;  // a file's first lines
};

}  // namespace tprof
