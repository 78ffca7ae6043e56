#include "interpose/life/control.h"

#include <cstring>

#include "interpose/base/clock.h"
#include "interpose/device/timing.h"
#include "interpose/session/session.h"
#include "interpose/user/user.h"
#include "interpose/write/lines.h"
#include "interpose/write/windows.h"
#include "interpose/write/writer.h"

namespace tprof::control {
namespace {

// The executed but unanswered request. Only for the writer's thread.
struct Pending {
  bool is;
  std::uint32_t asked;
  Command command;
  char argument[sizeof Control::argument + 1];
  Obeyed result;
};
constinit Pending g_pending{};

Control& table() {
  return session::mapping().head().control;
}

bool writes_lines() {
  return session::mapping().head().events != EventLines::off;
}

Obeyed window(std::string_view argument) {
  std::uint32_t steps = 0;
  std::uint64_t from = 0;
  if (!parse_window(argument, steps, from)) return Obeyed::unknown;
  if (!writes_lines()) return Obeyed::no_lines;
  return windows::open_for_steps(steps, from == 0 ? kNextStep : from - 1);
}

Obeyed timing(std::string_view value) {
  Timing wanted;
  return parse_timing(value, wanted) ? device::change(wanted) : Obeyed::unknown;
}

Obeyed execute(Command command, std::string_view argument) {
  switch (command) {
    case Command::start:
      return writes_lines() ? windows::open_by_hand() : Obeyed::no_lines;
    case Command::stop:
      return writes_lines() ? windows::close_by_hand() : Obeyed::no_lines;
    case Command::window:
      return window(argument);
    case Command::dump:
      return Obeyed::done;
    case Command::reset:
      user::reset();
      return Obeyed::done;
    case Command::timing:
      return timing(argument);
  }
  return Obeyed::unknown;
}

void answer(Output& output) {
  const auto command = static_cast<std::size_t>(g_pending.command);
  if (g_pending.command == Command::dump) output.dump();
  if (g_pending.result == Obeyed::done && g_pending.command == Command::window &&
      session::mapping().head().windows.too_late.load(std::memory_order_relaxed) != 0) {
    g_pending.result = Obeyed::late;
  }
  output.put([&](Text& out, const View& view) {
    control_line(out, view, now_ns(), command < kCommandCount ? kCommandNames[command] : "unknown",
                 g_pending.argument, g_pending.result);
  });
  table().result = g_pending.result;
  table().answered.store(g_pending.asked, std::memory_order_release);
}

void obey(std::uint32_t asked) {
  const Control& control = table();
  Pending& p = g_pending;
  p = {true, asked, control.command, {}, Obeyed::unknown};
  std::memcpy(p.argument, control.argument, sizeof control.argument);
  p.result = execute(p.command, p.argument);
  writer::wake();
}

}  // namespace

void follow(Output& output) {
  if (g_pending.is) answer(output);
  g_pending.is = false;
  const std::uint32_t asked = table().asked.load(std::memory_order_acquire);
  if (asked != table().answered.load(std::memory_order_relaxed)) obey(asked);
}

void after_fork() {
  g_pending = {};
}

}  // namespace tprof::control
