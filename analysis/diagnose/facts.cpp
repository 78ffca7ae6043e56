#include "diagnose/facts.h"

#include <algorithm>

namespace tprof::diagnose {

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

}  // namespace tprof::diagnose
