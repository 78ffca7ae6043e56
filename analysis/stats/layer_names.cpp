#include "stats/layer_names.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tprof::stats {
namespace {

using Names = RowNames::Names;

void see(RowNames::Around& around, std::size_t depth) {
  ++around.calls;
  around.depth += depth;
}

void add_all(Names& to, const Names& more) {
  for (const auto& [name, around] : more) {
    to[name].calls += around.calls;
    to[name].depth += around.depth;
  }
}

// Returns for each row the innermost name that is around all of its forward gathers and around none
// of another row's.
std::vector<std::string> own_names(const std::vector<RowNames>& all, Names RowNames::*of) {
  std::map<std::string_view, std::size_t> rows;
  for (const RowNames& row : all) {
    for (const auto& [name, around] : row.*of) ++rows[name];
  }
  std::vector<std::string> own;
  for (const RowNames& row : all) {
    own.emplace_back();
    std::optional<std::uint64_t> innermost;
    for (const auto& [name, around] : row.*of) {
      if (around.calls != row.gathered || rows[name] != 1) continue;
      if (innermost && *innermost <= around.depth) continue;
      innermost = around.depth;
      own.back() = name;
    }
  }
  return own;
}

}  // namespace

void RowNames::add(const LayerCalls& rank, std::uint32_t call, bool forward) {
  if (const std::string_view m = module_around(rank, call); !m.empty()) modules.emplace(m);
  if (!forward) return;
  ++gathered;
  if (const auto around = rank.around.find(call); around != rank.around.end()) {
    std::size_t depth = 0;
    for (const std::uint32_t name : around->second) see(ranges[rank.names[name]], depth++);
  }
  const SiteKey* site = rank.sites.find(rank.site[call]);
  if (site == nullptr) return;
  std::set<std::string> seen;  // a recursive function counts once
  for (const SiteFrame& f : site->frames) {
    std::string text = text_of(f);
    if (of_program(f) && seen.insert(text).second) see(frames[std::move(text)], seen.size());
  }
}

void RowNames::add(const RowNames& more) {
  modules.insert(more.modules.begin(), more.modules.end());
  gathered += more.gathered;
  add_all(ranges, more.ranges);
  add_all(frames, more.frames);
}

std::string_view module_of(std::string_view range) {
  for (const std::string_view label : {"FSDP::all_gather (", "FSDP::post_backward_reduce ("}) {
    if (!range.starts_with(label)) continue;
    const std::size_t end = range.rfind(')');
    if (end != std::string_view::npos && end > label.size()) {
      return range.substr(label.size(), end - label.size());
    }
  }
  return {};
}

std::string_view module_around(const LayerCalls& rank, std::uint32_t call) {
  const auto around = rank.around.find(call);
  if (around == rank.around.end()) return {};
  for (const std::uint32_t name : around->second) {
    const std::string_view module = module_of(rank.names[name]);
    if (!module.empty()) return module;
  }
  return {};
}

void name_rows(std::vector<LayerRow>& rows, const std::vector<RowNames>& names) {
  const bool modules =
      std::ranges::any_of(names, [](const RowNames& row) { return !row.modules.empty(); });
  const std::vector<std::string> ranges = own_names(names, &RowNames::ranges);
  const std::vector<std::string> frames = own_names(names, &RowNames::frames);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    LayerRow& row = rows[i];
    if (names[i].modules.size() == 1) {
      row.name = *names[i].modules.begin();
      row.named = NamedBy::module;
    } else if (modules && ranges[i] == "FSDP::all_gather") {  // the root's module has no name
      row.name = "(root)";
      row.named = NamedBy::module;
    } else if (!ranges[i].empty()) {
      row.name = ranges[i];
      row.named = NamedBy::range;
    } else if (!frames[i].empty()) {
      row.name = frames[i];
      row.named = NamedBy::site;
    }
  }
}

}  // namespace tprof::stats
