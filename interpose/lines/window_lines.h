// The lines of windows (tprof_window), and the files that windows have of their own.
#pragma once

#include <cstdint>

#include "interpose/lines/lines.h"

namespace tprof {

// rank-00003.step-100.json; rank-00003.window-2.json where the program opens them. On a clash
// (steps that are numbered anew) the name grows. While it is written it ends in .part.
inline constexpr std::string_view kUnfinishedFile = ".part";
[[gnu::cold]] inline void window_file_name(FixedText& name, const View& view,
                                           const WindowFile& file) {
  constexpr std::string_view kEnd = ".json";
  const std::string_view rank_file = bounded_text(view.head().rank_file);
  name << prefix(rank_file, rank_file.size() - std::min(rank_file.size(), kEnd.size()));
  file.step >= 0 ? (name << ".step-").number(file.step) : (name << ".window-").number(file.window);
  if (file.attempt != 0) (name << ".r").number(file.attempt);
  name << kEnd;
}

// Begins a window's file: with the rank file's beginning, `header`, and in it whose window this is.
[[gnu::cold]] inline void window_file_header(Text& out, const View& view, std::string_view header,
                                             const WindowFile& file) {
  constexpr std::string_view kEnd = "}},\n";
  out << prefix(header, header.size() - std::min(header.size(), kEnd.size()))
      << ",\"window\":{\"of\":";
  out.string(bounded_text(view.head().rank_file)) << ",\"number\":" << file.window << '}' << kEnd;
}

inline constexpr std::uint64_t kLinesUnknown = UINT64_MAX;
inline const Window& window_of(const View& view, std::uint32_t number) {
  return view.head().windows.window[(number - 1) % kMaxWindows];
}

// `file`: the window's own, which has its lines; null: the rank file has them. `named`: with the
// file's name, which the file itself does not need.
[[gnu::cold]] inline void window_line(Text& out, const View& view, std::uint32_t number,
                                      const WindowFile* file, bool named) {
  const Window& window = window_of(view, number);
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
  if (file != nullptr && file->lines != kLinesUnknown) out << ",\"lines\":" << file->lines;
  out << "}},\n";
}

// Ends a window's file.
[[gnu::cold]] inline void window_file_end(Text& out, const View& view, const WindowFile& file) {
  window_line(out, view, file.window, &file, false);
  out.cut(out.size() - 2);  // its comma
  out << "\n]\n";
}

inline WindowFile* file_of_window(Progress& p, std::uint32_t number) {
  for (WindowFile& file : p.window_file) {
    if (file.window == number) return &file;
  }
  return nullptr;
}

// The windows that can get their line. complete: those whose file is complete, up to the first
// without a file. ended: also those that have ended, since all that began in them was drained. all:
// also one that has not ended, since nobody will end it any more.
enum class WindowLines { complete, ended, all };

// Writes those behind `p.windows` to which nothing more comes.
[[gnu::cold]] inline void window_lines(Text& out, const View& view, Progress& p, WindowLines far) {
  const Windows& w = view.head().windows;
  const std::uint32_t opened = w.opened.load(std::memory_order_acquire);
  if (opened - p.windows > kMaxWindows) {  // of a damaged file
    p.windows = opened - kMaxWindows;
    std::memset(p.window_file, 0, sizeof p.window_file);
  }
  for (; p.windows != opened; ++p.windows) {
    const std::uint32_t number = p.windows + 1;
    WindowFile* file = file_of_window(p, number);
    const bool ended = window_of(view, number).to_ns.load(std::memory_order_acquire) != kNotYet;
    const bool without_file = far == WindowLines::all || (far == WindowLines::ended && ended);
    if (file != nullptr ? file->complete == 0 : !without_file) return;
    window_line(out, view, number, file, true);
    if (file != nullptr) *file = {};
  }
}

}  // namespace tprof
