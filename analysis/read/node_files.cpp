#include "read/folder.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "interpose/format/line_kinds.h"
#include "read/error.h"
#include "read/input.h"
#include "read/json.h"
#include "read/metadata.h"

namespace tprof::read {
namespace fs = std::filesystem;

namespace {

// Returns nullopt if the file was cut before it says what it is.
std::optional<Trace> node_file(const fs::path& file) {
  constexpr std::size_t kBeginning = 16U << 10;
  Trace trace{{file, Source{}.cut, {}}, {}, false};
  BlockReader reader(trace.source, kBeginning);
  Block block;
  if (!reader.next(block)) return std::nullopt;
  each_line(block, [&](const Line& line) {
    if (!trace.processes.empty() || is_line(line.text, LineKind::process_name)) return;
    try {
      if (!is_line(line.text, LineKind::node)) throw Malformed("expected a tprof_node line");
      simdjson::dom::parser parser;
      const Fields top = object_in(parser, line.text, true);
      Process& p = trace.processes.emplace_back();
      p.file = file.string();
      top.need("pid", p.line_pid);
      p.header.pid = p.line_pid;
      fill_origin(top.get<Fields>("args"), p.header);
    } catch (const Malformed& e) {
      throw BadInput(file, line.offset, e.what());
    }
  });
  return trace.processes.empty() ? std::nullopt : std::optional(std::move(trace));
}

}  // namespace

bool is_node_file(const fs::path& file) {
  std::string name = file.filename().string();
  const auto take = [&](std::string_view end) {
    const bool there = name.ends_with(end);
    if (there) name.resize(name.size() - end.size());
    return there;
  };
  for (const std::string_view ending : kPackedEndings) take(ending);
  if (!take(".json")) return false;
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  if (digits != name.size() && name.substr(0, digits).ends_with(".r")) name.resize(digits - 2);
  return take(".node");
}

std::vector<Trace> node_files_in(const fs::path& folder, std::vector<Skipped>& skipped) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (is_node_file(entry.path()) && entry.is_regular_file(error)) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<Trace> found;
  for (const fs::path& file : files) {
    try {
      if (auto trace = node_file(file)) found.push_back(std::move(*trace));
    } catch (const BadInput& e) {
      skipped.push_back({std::string(e.what()) + "; left out", true});
    }
  }
  return found;
}

std::vector<Trace> node_files_beside(const Traces& traces, std::vector<Skipped>& skipped) {
  std::set<fs::path> folders;
  for (const Trace& trace : traces.traces) {
    const fs::path folder = trace.source.file.parent_path();
    if (!trace.merged) folders.insert(folder.empty() ? fs::path(".") : folder);
  }
  std::vector<Trace> all;
  for (const fs::path& folder : folders) {
    std::ranges::move(node_files_in(folder, skipped), std::back_inserter(all));
  }
  return all;
}

}  // namespace tprof::read
