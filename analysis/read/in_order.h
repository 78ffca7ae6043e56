// An object that is asked for its fields in the order in which it has them, as far as it has them:
// then each is found at once. As json.h in all else.
#pragma once

#include "read/json.h"

namespace tprof::read {

class InOrder {
 public:
  explicit InOrder(const object& o) : object_(o), last_(o.begin()) {}
  std::optional<element> find(std::string_view key) const;

 private:
  object object_;
  mutable object::iterator last_;  // that was found
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
