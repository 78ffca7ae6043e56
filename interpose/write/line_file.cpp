#include "interpose/write/line_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "interpose/base/complain.h"
#include "interpose/base/held_signals.h"
#include "interpose/format/file_names.h"

namespace tprof {

void complain_of_write(std::string_view what) {
  const bool room = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
  complain(room ? Trouble::room : Trouble::write, what, std::strerror(errno));
}

bool LineFile::still_ours() {
  char path[1300];
  put_beside(FixedText(path), view_.head(), "", ".json");
  if (file_.still_ours() || file_.open_again(path)) return true;
  complain(Trouble::descriptor,
           "the program closed the trace's descriptor, and the file is gone: no more lines, "
           "tprof recover can get the counts");
  return false;
}

bool LineFile::reserve(std::uint64_t from, std::uint64_t until) {
  constexpr std::uint64_t kStep = 256 << 10;  // one system call for 1,200 lines
  if (!reserves_ || until <= reserved_) return true;
  for (const std::uint64_t more : {kStep, std::uint64_t{0}}) {
    const Reserved answer = reserve_blocks(file_.fd, from, until + more - from);
    if (answer == Reserved::no) continue;
    reserves_ = answer == Reserved::yes;
    reserved_ = until + more;
    return true;
  }
  return false;
}

bool LineFile::cut(std::uint64_t size) {
  reserved_ = size;
  return ftruncate(file_.fd, static_cast<off_t>(size)) == 0;
}

bool LineFile::bring_back(std::uint64_t size) {
  char path[1300];
  put_beside(FixedText(path), view_.head(), "", ".json");
  const OwnFile copy = create_file(path, 0666);
  if (copy.fd < 0) return false;
  bool well = size_allowed(size);
  char part[4096];
  for (std::uint64_t at = 0; well && at < size;) {
    const ssize_t n = pread(file_.fd, part, std::min<std::uint64_t>(sizeof part, size - at),
                            static_cast<off_t>(at));
    well = n > 0 && write_all(copy.fd, {part, static_cast<std::size_t>(n)}, at);
    at += n > 0 ? static_cast<std::uint64_t>(n) : 0;
  }
  well = well && dup3(copy.fd, file_.fd, O_CLOEXEC) == file_.fd;
  close(copy.fd);
  if (!well) {
    unlink(path);
    return false;
  }
  file_ = own_file(file_.fd);
  reserved_ = 0;
  ++times_brought_back_;
  complain(Trouble::removed, "the trace was removed while the process ran, and is written again: ",
           bounded_text(view_.head().directory));
  return true;
}

void WindowFiles::put_path(Path& path, const FileLines& file, std::string_view end) const {
  FixedText text(path.text);
  text << bounded_text(view_.head().directory) << "/";
  window_file_name(text, view_, file);
  text << end;
}

// Never overwrites a file, complete or not.
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
