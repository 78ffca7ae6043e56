// "0-3,7": the ranks that a command is about.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tprof::cli {

class RankList {
 public:
  // Throws std::invalid_argument that says what was expected.
  static RankList parse(std::string_view text);

  bool contains(std::int64_t rank) const;

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;
};

}  // namespace tprof::cli
