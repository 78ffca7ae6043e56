#include "report/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "check/names.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using check::Fact;
using check::Facts;
using check::Value;
using check::Values;
using check::Who;

struct TextOf {
  std::string_view format;

  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(bool) const { return ""; }
  std::string operator()(std::int64_t n) const { return std::to_string(n); }
  std::string operator()(std::uint64_t n) const {
    return format == "," ? text::thousands(n) : std::to_string(n);
  }
  std::string operator()(check::Ns d) const { return check::duration(d.n); }
  std::string operator()(check::Time t) const { return check::utc(t.realtime_ns); }
  std::string operator()(check::Bytes b) const { return text::bytes(b.n); }
  std::string operator()(check::SizeClass c) const { return check::size_class(c.n); }
  std::string operator()(check::Percent p) const { return fmt::format("{:.1f}%", p.n); }
  std::string operator()(const std::string& s) const { return s; }
  std::string operator()(const Who& who) const {
    if (format == "is") return check::is_or_was(who);
    return format == "rank" ? check::name_of_rank(who.some[0]) : check::names_of(who);
  }
  std::string operator()(const text::Ranks& ranks) const {
    return format == "list" ? ranks.str() : check::names_of(ranks);
  }
  std::string operator()(const Facts& facts) const {
    const std::string_view between = format == "/" ? " / " : format == ";" ? "; " : ", ";
    std::string all;
    for (const Fact& f : facts) {
      const bool last = format == "and" && &f == &facts.back();
      if (!all.empty()) all += last ? " and " : between;
      all += format == "advice" ? advice(f) : sentence(f);
    }
    return all;
  }
};

bool chosen(const Value& v) {
  if (const auto* flag = std::get_if<bool>(&v.is)) return *flag;
  if (const auto* n = std::get_if<std::uint64_t>(&v.is)) return *n == 1;
  if (const auto* who = std::get_if<Who>(&v.is)) return who->count == 1;
  return !std::visit(TextOf{}, v.is).empty();
}

// Returns the position of a character outside of braces, or of an unmatched closing brace.
std::size_t outside(std::string_view text, char what) {
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (depth == 0 && text[i] == what) return i;
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && depth != 0) --depth;
  }
  return text.size();
}

// Returns the text for a field in braces.
std::string field(std::string_view f, const Values& values, bool in_part) {
  const std::string_view whole = f;
  const std::size_t end = std::min(f.find_first_of(":?|"), f.size());
  const auto found = std::ranges::find(values, f.substr(0, end), &check::Named::name);
  const bool given = found != values.end();
  static const Value kAbsent;
  const Value& value = given ? found->value : kAbsent;
  const char what = end == f.size() ? ':' : f[end];
  f.remove_prefix(std::min(end + 1, f.size()));
  if (what == '?') {
    const std::size_t bar = outside(f, '|');
    return filled(chosen(value) ? f.substr(0, bar) : f.substr(bar + 1), values);
  }
  std::string text = std::visit(TextOf{what == ':' ? f : ""}, value.is);
  if (what == '|' && text.empty()) return std::string(f);
  return given || in_part ? text : "{" + std::string(whole) + "}";
}

}  // namespace

std::string filled(std::string_view text, const Values& values) {
  std::string out;
  std::size_t part = 0;  // where the bracketed part begins
  bool in_part = false;
  bool absent = false;  // a value in it is absent
  while (!text.empty()) {
    const std::size_t plain = std::min(text.find_first_of("[]{"), text.size());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const char c = text[0];
    text.remove_prefix(1);
    if (c == '[') {
      part = out.size();
      in_part = true;
      absent = false;
    } else if (c == ']') {
      if (absent) out.resize(part);
      in_part = false;
    } else {
      const std::size_t end = outside(text, '}');
      const std::string_view name = text.substr(0, end);
      const std::string value = field(name, values, in_part);
      absent = absent || (value.empty() && name.find('?') == std::string_view::npos);
      out += value;
      text.remove_prefix(end + 1);
    }
  }
  return out;
}

const Words& words_of(check::Say say) {
  static const auto kBySay = [] {
    std::array<Words, static_cast<std::size_t>(check::Say::count_)> all{};
    for (const Words& w : all_words()) all[static_cast<std::size_t>(w.say)] = w;
    return all;
  }();
  return kBySay[static_cast<std::size_t>(say)];
}

std::string sentence(const Fact& fact) {
  return filled(words_of(fact.what).text, fact.values);
}

std::string advice(const Fact& fact) {
  return filled(words_of(fact.what).advice, fact.values);
}

}  // namespace tprof::report
