#include "interpose/write/window_files.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "interpose/base/complain.h"

namespace tprof {

void WindowFiles::clear() {
  for (Text& text : text_) text.clear();
}

bool WindowFiles::empty() const {
  return std::all_of(text_, text_ + kWindowFiles, [](const Text& t) { return t.size() == 0; });
}

void WindowFiles::put_path(Path& path, const WindowFile& file, std::string_view end) const {
  FixedText text(path.text);
  text << bounded_text(view_.head().directory) << "/";
  window_file_name(text, view_, file);
  text << end;
}

// Nothing is overwritten: neither a file that was completed nor one that somebody left.
bool WindowFiles::create(WindowFile& file, std::size_t i) {
  constexpr std::uint32_t kAttempts = 1000;
  Path path;
  for (; file.attempt < kAttempts; ++file.attempt) {
    put_path(path, file, "");
    if (file_at(path.text).known) continue;
    put_path(path, file, kUnfinishedFile);
    file_[i] = create_file(path.text, 0666);
    if (file_[i].fd >= 0) return true;
    if (errno != EEXIST) return false;
  }
  return false;
}

bool WindowFiles::write(Progress& next) {
  for (std::size_t i = 0; i < kWindowFiles; ++i) {
    WindowFile& file = next.window_file[i];
    const Text& text = text_[i];
    if (text.size() == 0) continue;
    if (text.failed()) return false;
    if (file.offset == 0) {
      first_.clear();
      if (!create(file, i)) return false;
      window_file_header(first_, view_, view_.header(), file);
      if (first_.failed() || !write_all(file_[i].fd, first_.view(), 0)) return false;
      file.offset = first_.size();
    }
    if (!file_[i].still_ours()) {
      errno = EBADF;
      return false;
    }
    if (!size_allowed(file.offset + text.size())) {
      errno = EFBIG;
      return false;
    }
    if (!write_all(file_[i].fd, text.view(), file.offset)) return false;
    file.offset += text.size();
  }
  return true;
}

void WindowFiles::cut_back(const Progress& committed, const Progress& next) {
  const int why = errno;
  for (std::size_t i = 0; i < kWindowFiles; ++i) {
    const std::uint64_t whole = committed.window_file[i].offset;
    if (!file_[i].still_ours()) continue;
    if (whole != 0) {
      if (ftruncate(file_[i].fd, static_cast<off_t>(whole)) != 0) errno = 0;
      continue;
    }
    Path path;
    put_path(path, next.window_file[i], kUnfinishedFile);
    unlink(path.text);
    close(file_[i].fd);
    file_[i] = {};
  }
  errno = why;
}

void WindowFiles::complete(const WindowFile& file, std::size_t i) {
  Path part;
  Path whole;
  put_path(part, file, kUnfinishedFile);
  put_path(whole, file, "");
  Text& end = text_[i];
  window_file_end(end, view_, file);
  const bool done =
      !end.failed() && file_[i].still_ours() && size_allowed(file.offset + end.size()) &&
      write_all(file_[i].fd, end.view(), file.offset) && rename(part.text, whole.text) == 0;
  if (!done) {
    complain(Trouble::write,
             "cannot complete the file of a window, counting goes on: ", std::strerror(errno));
  }
  if (file_[i].still_ours()) close(file_[i].fd);
  file_[i] = {};
}

}  // namespace tprof
