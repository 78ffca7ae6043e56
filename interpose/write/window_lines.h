// The lines of windows (tprof_window), and the files of windows.
#pragma once

#include <cstdint>

#include "interpose/format/file_names.h"
#include "interpose/write/lines.h"

namespace tprof {

// rank-00003.step-100.json; rank-00003.window-2.json if the program opens windows. If the name
// exists (step numbers begin again), it gets a suffix. While the file is written, the name ends in
// .part.
inline constexpr std::string_view kUnfinishedFile = ".part";
[[gnu::cold]] inline void window_file_name(FixedText& name, const View& view,
                                           const FileLines& file) {
  name << stem_of(bounded_text(view.head().rank_file));
  file.step >= 0 ? (name << ".step-").number(file.step) : (name << ".window-").number(file.window);
  if (file.attempt != 0) (name << ".r").number(file.attempt);
  name << ".json";
}

// Begins a window's file with the rank file's beginning, `header`, and adds the window to it.
[[gnu::cold]] inline void window_file_header(Text& out, const View& view, std::string_view header,
                                             const FileLines& file) {
  constexpr std::string_view kEnd = "}},\n";
  out << prefix(header, header.size() - std::min(header.size(), kEnd.size()))
      << ",\"window\":{\"of\":";
  out.string(bounded_text(view.head().rank_file)) << ",\"number\":" << file.window << '}' << kEnd;
}

inline constexpr std::uint64_t kCallsUnknown = UINT64_MAX;
inline const Window& window_numbered(const View& view, std::uint32_t number) {
  return view.head().windows.window[(number - 1) % kMaxWindows];
}

// `file`: the window's file; null: its lines are in the rank file. `named`: with the file's name,
// which the file itself does not need.
[[gnu::cold]] inline void window_line(Text& out, const View& view, std::uint32_t number,
                                      const FileLines* file, bool named) {
  const Window& window = window_numbered(view, number);
  const std::uint64_t from_ns = window.from_ns.load(std::memory_order_acquire);
  const std::uint64_t to_ns = window.to_ns.load(std::memory_order_acquire);
  open_line(out, view, LineKind::window, 0) << ",\"args\":{\"ts\":";
  timestamp(out, view, from_ns);
  if (to_ns != kNotYet) (out << ",\"dur\":").micros(to_ns - from_ns);
  const std::int64_t first = window.first_step.load(std::memory_order_relaxed);
  if (first >= 0) {
    out << ",\"first_step\":" << first
        << ",\"last_step\":" << window.last_step.load(std::memory_order_relaxed);
  }
  if (file != nullptr && named) {
    char name[256];
    FixedText text(name);
    window_file_name(text, view, *file);
    (out << ",\"file\":").string(text.view());
  }
  if (file != nullptr && file->calls != kCallsUnknown) out << ",\"lines\":" << file->calls;
  out << "}},\n";
}

// Ends a window's file.
[[gnu::cold]] inline void window_file_end(Text& out, const View& view, const FileLines& file) {
  window_line(out, view, file.window, &file, false);
  out.cut(out.size() - 2);  // its comma
  out << "\n]\n";
}

// Returns the place of a window's file; for `window` 0, a free place. kLineFiles: there is none.
inline std::size_t file_of_window(const WrittenLines& w, std::uint32_t window) {
  std::size_t n = kRankFile + 1;
  while (n < kLineFiles && w.file[n].window != window) ++n;
  return n;
}

// Returns the place of the oldest incomplete window's file. kLineFiles: there is none.
inline std::size_t oldest_window_file(const WrittenLines& w) {
  std::size_t oldest = kLineFiles;
  for (std::size_t n = kRankFile + 1; n < kLineFiles; ++n) {
    const FileLines& file = w.file[n];
    if (file.window == 0 || file.complete != 0) continue;
    if (oldest == kLineFiles || file.window < w.file[oldest].window) oldest = n;
  }
  return oldest;
}

// The windows that get their line. complete: windows with a complete file, up to the first without
// a file. ended: also ended windows, since everything that began in them was drained. all: also an
// open one, since it will not end any more.
enum class WindowLines { complete, ended, all };

// Writes the windows after `done.windows` that get no more lines.
[[gnu::cold]] inline void window_lines(Text& out, const View& view, WrittenLines& done,
                                       WindowLines far) {
  const Windows& w = view.head().windows;
  const std::uint32_t opened = w.opened.load(std::memory_order_acquire);
  if (opened - done.windows > kMaxWindows) {  // of a damaged file
    done.windows = opened - kMaxWindows;
    for (std::size_t n = kRankFile + 1; n < kLineFiles; ++n) done.file[n] = {};
  }
  for (; done.windows != opened; ++done.windows) {
    const std::uint32_t number = done.windows + 1;
    const std::size_t n = file_of_window(done, number);
    FileLines* file = n < kLineFiles ? &done.file[n] : nullptr;
    const bool ended =
        window_numbered(view, number).to_ns.load(std::memory_order_acquire) != kNotYet;
    const bool without_file = far == WindowLines::all || (far == WindowLines::ended && ended);
    if (file != nullptr ? file->complete == 0 : !without_file) return;
    window_line(out, view, number, file, true);
    if (file != nullptr) *file = {};
  }
}

}  // namespace tprof
