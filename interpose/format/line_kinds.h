// The metadata lines (ph "M") of rank files, nodes' files and merged traces: one row for each kind.
// The writer takes a line's name from here, and readers recognize lines by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace tprof {

enum class LineKind : std::uint8_t {
  process_name,
  process_sort_index,
  thread_name,
  header,
  identity,
  clock,
  comm,
  site,
  graph,
  stream,
  window,
  group,
  step,
  ledger,
  control,
  device_clock,
  last,
  footer,
  node,
  merged,
};

struct LineKindInfo {
  std::string_view start;  // how a line begins: its name comes first
  bool rows = false;       // the line has rows of a ledger
  bool explains = false;   // later events need it, so a window's file has it, too
};

// In the order of LineKind.
#define TPROF_LINE(name) "{\"name\":\"" name "\""
inline constexpr LineKindInfo kLineKinds[] = {
    {TPROF_LINE("process_name"), false, true},  // the first three are the viewers' own
    {TPROF_LINE("process_sort_index"), false, true},
    {TPROF_LINE("thread_name"), false, true},
    {TPROF_LINE("tprof_header"), false, true},
    {TPROF_LINE("tprof_identity"), false, true},
    {TPROF_LINE("tprof_clock")},
    {TPROF_LINE("tprof_comm"), false, true},
    {TPROF_LINE("tprof_site"), false, true},
    {TPROF_LINE("tprof_graph"), true, true},
    {TPROF_LINE("tprof_stream"), false, true},
    {TPROF_LINE("tprof_window"), false, true},
    {TPROF_LINE("tprof_group")},
    {TPROF_LINE("tprof_step"), true},
    {TPROF_LINE("tprof_ledger"), true},
    {TPROF_LINE("tprof_control")},
    {TPROF_LINE("tprof_device_clock")},
    {TPROF_LINE("tprof_last")},
    {TPROF_LINE("tprof_footer"), true},
    {TPROF_LINE("tprof_node")},    // of files of nodes only
    {TPROF_LINE("tprof_merged")},  // of merged traces only
};
#undef TPROF_LINE
static_assert(std::size(kLineKinds) == static_cast<std::size_t>(LineKind::merged) + 1);

constexpr const LineKindInfo& info_of(LineKind kind) {
  return kLineKinds[static_cast<std::size_t>(kind)];
}

constexpr std::string_view name_of(LineKind kind) {
  constexpr std::size_t kBeforeName = sizeof("{\"name\":\"") - 1;
  const std::string_view start = info_of(kind).start;
  return start.substr(kBeforeName, start.size() - kBeforeName - 1);
}

constexpr bool is_line(std::string_view line, LineKind kind) {
  return line.starts_with(info_of(kind).start);
}

// Returns nothing for any other name.
constexpr std::optional<LineKind> line_kind(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kLineKinds); ++i) {
    if (name_of(static_cast<LineKind>(i)) == name) return static_cast<LineKind>(i);
  }
  return std::nullopt;
}

}  // namespace tprof
