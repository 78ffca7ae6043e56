// Looks up the fields of an object like json.h. Each is found at once as long as fields are asked
// for in the order in which the object has them.
#pragma once

#include "read/json.h"

namespace tprof::read {

class InOrder {
 public:
  explicit InOrder(const object& o) : object_(o), last_(o.begin()) {}
  std::optional<element> find(std::string_view key) const;

 private:
  object object_;
  mutable object::iterator last_;  // the field found last
};

inline std::optional<element> find(const InOrder& o, std::string_view key) {
  return o.find(key);
}
std::optional<std::int64_t> optional_integer(const InOrder& o, std::string_view key);
std::int64_t integer_in(const InOrder& o, std::string_view key, std::int64_t least,
                        std::int64_t most);
std::uint64_t count(const InOrder& o, std::string_view key);
std::string_view text(const InOrder& o, std::string_view key);

}  // namespace tprof::read
