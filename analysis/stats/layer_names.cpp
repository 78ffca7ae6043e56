#include "stats/layer_names.h"

#include <optional>

namespace tprof::stats {
namespace {

// Returns the innermost name that is around all gathers of a row and around none of another row's.
std::pair<NamedBy, std::string> own_name(
    const RowNames& row, const std::map<std::pair<NamedBy, std::string>, std::size_t>& rows_with) {
  std::pair<NamedBy, std::string> own;
  std::pair innermost(NamedBy::site, UINT64_MAX);  // ranges go before sites
  for (const auto& [name, around] : row.around) {
    const std::pair depth(name.first, around.depth);
    if (around.calls != row.gathered || rows_with.at(name) != 1 || depth >= innermost) continue;
    innermost = depth;
    own = name;
  }
  return own;
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

}  // namespace

void RowNames::add(const RankCalls& rank, const SiteLines& sites, std::uint32_t call) {
  const auto see = [&](NamedBy by, std::string_view name, std::size_t depth) {
    Around& seen = around[{by, std::string(name)}];
    ++seen.calls;
    seen.depth += depth;
  };
  ++gathered;
  if (const std::string_view m = module_around(rank, call); !m.empty()) modules.emplace(m);
  if (const auto ranges = rank.around.find(call); ranges != rank.around.end()) {
    std::size_t depth = 0;
    for (const std::uint32_t name : ranges->second) see(NamedBy::range, rank.names[name], depth++);
  }
  const SiteKey* site = sites.find(rank.calls[call].site);
  if (site == nullptr) return;
  std::set<std::string> seen;  // a recursive function counts once
  for (const SiteFrame& f : site->frames) {
    const std::string text = text_of(f);
    if (of_program(f) && seen.insert(text).second) see(NamedBy::site, text, seen.size());
  }
}

RowNames& RowNames::operator+=(const RowNames& more) {
  gathered += more.gathered;
  modules.insert(more.modules.begin(), more.modules.end());
  for (const auto& [name, seen] : more.around) {
    around[name].calls += seen.calls;
    around[name].depth += seen.depth;
  }
  return *this;
}

std::string_view module_around(const RankCalls& rank, std::uint32_t call) {
  const auto around = rank.around.find(call);
  if (around == rank.around.end()) return {};
  for (const std::uint32_t name : around->second) {
    const std::string_view module = module_of(rank.names[name]);
    if (!module.empty()) return module;
  }
  return {};
}

std::vector<std::pair<NamedBy, std::string>> names_of(const std::vector<const RowNames*>& rows) {
  std::map<std::pair<NamedBy, std::string>, std::size_t> rows_with;
  bool modules = false;
  for (const RowNames* row : rows) {
    modules = modules || !row->modules.empty();
    for (const auto& [name, around] : row->around) ++rows_with[name];
  }
  std::vector<std::pair<NamedBy, std::string>> names;
  for (const RowNames* row : rows) {
    names.push_back(own_name(*row, rows_with));
    if (row->modules.size() == 1) {
      names.back() = {NamedBy::module, *row->modules.begin()};
    } else if (modules && names.back().second == "FSDP::all_gather") {
      names.back() = {NamedBy::module, "(root)"};  // the root's module has no name
    }
  }
  return names;
}

}  // namespace tprof::stats
