#include "check/finding.h"

#include <map>

namespace tprof::check {
namespace {

void worst_first(Findings& findings) {
  std::ranges::stable_sort(findings, std::ranges::greater(), &Finding::severity);
}

}  // namespace

Value::Value() = default;
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;
bool Value::operator==(const Value& other) const {
  return is == other.is;
}

bool has_value(const Values& values, std::string_view name) {
  const auto named = std::ranges::find(values, name, &Named::name);
  return named != values.end() && !std::holds_alternative<std::monostate>(named->value.is);
}

void set(Fact& fact, Named value) {
  const auto known = std::ranges::find(fact.values, value.name, &Named::name);
  if (known != fact.values.end()) {
    *known = std::move(value);
  } else {
    fact.values.push_back(std::move(value));
  }
}

void shorten(Facts& list, std::size_t most) {
  if (list.size() <= most) return;
  const std::size_t more = list.size() - most;
  list.resize(most);
  list.push_back({Say::more, {{"more", more}}});
}

TimeRange joined(const std::optional<TimeRange>& some, const TimeRange& more) {
  if (!some) return more;
  return {std::min(some->from_ns, more.from_ns), std::max(some->to_ns, more.to_ns)};
}

Finding& add(Findings& to, Kind kind, const Processes& who, Values values) {
  values.emplace_back("who", who);
  to.push_back({.kind = kind,
                .severity = row_of(kind).severity,
                .ranks = ranks_of(who),
                .text = {say(kind), std::move(values)}});
  return to.back();
}

void tell_in(Finding& cause, Say how, const Finding& effect) {
  cause.evidence.push_back({how, {{"what", effect.text}}});
  cause.evidence.insert(cause.evidence.end(), effect.evidence.begin(), effect.evidence.end());
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

std::set<std::string> communicators_of(const Findings& findings,
                                       std::initializer_list<Kind> kinds) {
  std::set<std::string> ids;
  for (const Finding& f : findings) {
    if (std::ranges::find(kinds, f.kind) != kinds.end()) ids.insert(f.communicator);
  }
  return ids;
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

}  // namespace tprof::check
