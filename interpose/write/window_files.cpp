#include "interpose/write/window_files.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "interpose/base/complain.h"
#include "interpose/base/held_signals.h"

namespace tprof {

void WindowFiles::put_path(Path& path, const FileLines& file, std::string_view end) const {
  FixedText text(path.text);
  text << bounded_text(view_.head().directory) << "/";
  window_file_name(text, view_, file);
  text << end;
}

// Nothing is overwritten: neither a file that was completed nor one that somebody left.
bool WindowFiles::create(std::size_t n, FileLines& file) {
  constexpr std::uint32_t kAttempts = 1000;
  Path path;
  for (; file.attempt < kAttempts; ++file.attempt) {
    put_path(path, file, "");
    if (file_at(path.text).known) continue;
    put_path(path, file, kUnfinishedFile);
    file_[n] = create_file(path.text, 0666);
    if (file_[n].fd >= 0) return true;
    if (errno != EEXIST) return false;
  }
  return false;
}

bool WindowFiles::append(std::size_t n, std::string_view text, std::uint64_t at) {
  if (!file_[n].still_ours()) {
    errno = EBADF;
    return false;
  }
  if (!size_allowed(at + text.size())) {
    errno = EFBIG;
    return false;
  }
  return write_all(file_[n].fd, text, at);
}

bool WindowFiles::write(std::size_t n, FileLines& file, const Text& text) {
  if (text.size() == 0) return true;
  if (text.failed()) return false;
  if (file.offset == 0) {
    Text first;
    if (!create(n, file)) return false;
    window_file_header(first, view_, view_.header(), file);
    if (first.failed() || !append(n, first.view(), 0)) return false;
    file.offset = first.size();
  }
  if (!append(n, text.view(), file.offset)) return false;
  file.offset += text.size();
  return true;
}

void WindowFiles::cut_back(std::size_t n, const FileLines& file, std::uint64_t whole) {
  const KeepErrno keep_errno;
  if (!file_[n].still_ours()) return;
  if (whole != 0) {
    if (ftruncate(file_[n].fd, static_cast<off_t>(whole)) != 0) errno = 0;
    return;
  }
  Path path;
  put_path(path, file, kUnfinishedFile);
  unlink(path.text);
  close(file_[n].fd);
  file_[n] = {};
}

void WindowFiles::complete(std::size_t n, const FileLines& file, Text& end) {
  Path part;
  Path whole;
  put_path(part, file, kUnfinishedFile);
  put_path(whole, file, "");
  window_file_end(end, view_, file);
  if (end.failed() || !append(n, end.view(), file.offset) || rename(part.text, whole.text) != 0) {
    complain(Trouble::write,
             "cannot complete the file of a window, counting goes on: ", std::strerror(errno));
  }
  if (file_[n].still_ours()) close(file_[n].fd);
  file_[n] = {};
}

}  // namespace tprof
