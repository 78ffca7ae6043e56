#include "interpose/write/whole_windows.h"

#include "interpose/base/clock.h"

namespace tprof {

void WholeWindows::complete(LineBatch& lines, Which which) {
  const std::uint32_t opened = lines.view.head().windows.opened.load(std::memory_order_acquire);
  if (lines.windows.texts() == nullptr || opened == lines.committed().windows) return;
  constexpr std::uint64_t kLateNs = 1'000'000'000;  // for calls that return after the end
  const std::uint64_t now = now_ns();
  for (;;) {
    WindowFile* oldest = nullptr;
    lines.begin();
    for (WindowFile& file : lines.next.window_file) {
      if (file.window == 0 || file.complete != 0) continue;
      const std::uint64_t to_ns =
          window_of(lines.view, file.window).to_ns.load(std::memory_order_acquire);
      if (which == Which::late && (to_ns > now || now - to_ns < kLateNs)) continue;
      if (oldest == nullptr || file.window < oldest->window) oldest = &file;
    }
    if (oldest == nullptr) break;
    lines.windows.complete(*oldest, static_cast<std::size_t>(oldest - lines.next.window_file));
    oldest->complete = 1;
    lines.commit(lines.next);
    if (which == Which::oldest) break;
  }
  lines.begin();
  lines.drain.windows(lines.text, lines.next,
                      which == Which::oldest ? WindowLines::complete : WindowLines::ended);
  if (lines.text.size() != 0) lines.flush();
}

}  // namespace tprof
