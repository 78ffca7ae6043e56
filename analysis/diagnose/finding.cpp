#include "diagnose/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "diagnose/names.h"
#include "text/text.h"

namespace tprof::diagnose {
namespace {

constexpr std::size_t kMaxOfKind = 16;

void worst_first(Findings& findings) {
  std::ranges::stable_sort(findings, std::ranges::greater(), &Finding::severity);
}

}  // namespace

Finding& add(Findings& to, const Kind& kind, const Processes& who, std::string text,
             std::string next) {
  to.push_back({kind.name, kind.severity, ranks_of(who), std::move(text), std::move(next)});
  return to.back();
}

bool healthy(const Findings& findings) {
  return std::ranges::all_of(findings,
                             [](const Finding& f) { return f.severity == Severity::note; });
}

void order_and_cap(Findings& findings) {
  worst_first(findings);
  struct OfKind {
    std::size_t n = 0;
    Finding rest{};
  };
  std::map<std::string, OfKind> kinds;
  std::erase_if(findings, [&](const Finding& f) {
    auto& [n, rest] = kinds[f.kind];
    if (++n <= kMaxOfKind) return false;
    rest.severity = std::max(rest.severity, f.severity);
    rest.ranks.insert(rest.ranks.end(), f.ranks.begin(), f.ranks.end());
    return true;
  });
  for (auto& [kind, of_kind] : kinds) {
    auto& [n, rest] = of_kind;
    if (n <= kMaxOfKind) continue;
    std::ranges::sort(rest.ranks);
    rest.ranks.erase(std::unique(rest.ranks.begin(), rest.ranks.end()), rest.ranks.end());
    rest.kind = kind;
    rest.text = fmt::format("and {} more findings of kind {}{}", text::thousands(n - kMaxOfKind),
                            kind, rest.ranks.empty() ? "" : ": " + names_of(rest.ranks));
    findings.push_back(std::move(rest));
  }
  worst_first(findings);
}

}  // namespace tprof::diagnose
