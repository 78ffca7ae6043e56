#include "cli/rank_list.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace tprof::cli {

RankList RankList::parse(std::string_view text) {
  const auto malformed = [&] {
    return std::invalid_argument("expected ranks such as 0-3,7, found '" + std::string(text) + "'");
  };
  RankList list;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&] {
    std::int64_t v = 0;
    const auto [next, error] = std::from_chars(at, end, v);
    if (error != std::errc() || v < 0) throw malformed();
    at = next;
    return v;
  };
  for (;;) {
    const std::int64_t first = number();
    std::int64_t last = first;
    if (at != end && *at == '-') {
      ++at;
      last = number();
    }
    if (last < first) throw malformed();
    list.ranges_.emplace_back(first, last);
    if (at == end) return list;
    if (*at++ != ',') throw malformed();
  }
}

bool RankList::contains(std::int64_t rank) const {
  return std::ranges::any_of(
      ranges_, [rank](const auto& range) { return range.first <= rank && rank <= range.second; });
}

}  // namespace tprof::cli
