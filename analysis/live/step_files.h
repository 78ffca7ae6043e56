// Finds the step that each rank is at, from the ends of the files that are being written.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "live/followed_file.h"
#include "live/rank.h"

namespace tprof::live {

class StepFiles {
 public:
  // Sets the step of each rank whose lines tell one.
  void look(std::vector<Rank>& ranks);

 private:
  struct Followed {
    FollowedFile file;
    std::optional<Step> last{};
  };
  std::map<std::string, Followed> files_;
};

}  // namespace tprof::live
