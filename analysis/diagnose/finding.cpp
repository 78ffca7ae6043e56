#include "diagnose/finding.h"

#include <algorithm>
#include <map>

namespace tprof::diagnose {
namespace {

constexpr std::size_t kMaxOfKind = 16;

void worst_first(Findings& findings) {
  std::ranges::stable_sort(findings, std::ranges::greater(), &Finding::severity);
}

}  // namespace

Finding& add(Findings& to, Kind kind, const Processes& who, Values values) {
  values.emplace_back("who", who);
  to.push_back({.kind = kind,
                .severity = row_of(kind).severity,
                .ranks = ranks_of(who),
                .text = {say(kind), std::move(values)}});
  return to.back();
}

bool keeps_from_going_on(const Finding& f) {
  const bool waits_for_ever = f.kind == Kind::p2p_sizes && f.severity == Severity::error;
  return f.kind == Kind::mismatch || f.kind == Kind::group_order || f.kind == Kind::hang ||
         f.kind == Kind::lost_device || waits_for_ever;
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
  std::map<std::string_view, OfKind> kinds;  // by name
  std::erase_if(findings, [&](const Finding& f) {
    auto& [n, rest] = kinds[name_of(f.kind)];
    if (++n <= kMaxOfKind) return false;
    rest.kind = f.kind;
    rest.severity = std::max(rest.severity, f.severity);
    rest.ranks.add(f.ranks);
    return true;
  });
  for (auto& [kind, of_kind] : kinds) {
    auto& [n, rest] = of_kind;
    if (n <= kMaxOfKind) continue;
    rest.text = {Say::more_of_kind,
                 {{"more", n - kMaxOfKind}, {"kind", std::string(kind)}, {"ranks", rest.ranks}}};
    findings.push_back(std::move(rest));
  }
  worst_first(findings);
}

}  // namespace tprof::diagnose
