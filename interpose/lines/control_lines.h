// The lines of commands that the process obeyed (tprof_control).
#pragma once

#include "interpose/format/control.h"
#include "interpose/lines/lines.h"

namespace tprof {

// `argument`: "" where the command has none.
[[gnu::cold]] inline void control_line(Text& out, const View& view, std::uint64_t now_ns,
                                       std::string_view command, std::string_view argument,
                                       Obeyed result) {
  open_line(out, view, LineKind::control, 0) << ",\"args\":{\"ts\":";
  timestamp(out, view, now_ns) << ",\"ctl\":\"" << command << '"';
  if (!argument.empty()) (out << ",\"argument\":").string(argument);
  out << ",\"obeyed\":\"" << kObeyedNames[static_cast<std::size_t>(result)] << "\"}},\n";
}

}  // namespace tprof
