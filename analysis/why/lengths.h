// How long the counted steps take, and which take far longer than the others.
#pragma once

#include <algorithm>
#include <vector>

#include "why/cause.h"

namespace tprof::why {

struct Lengths {
  std::vector<double> ns;  // by place in Evidence::steps
  double usual = 0;
  double width = 0;  // spread of the usual steps, as a standard deviation

  // From this length on, a step takes far longer than the others.
  double far() const { return std::max(1.25 * usual, usual + 8 * width); }
  bool far_longer(std::size_t place) const { return ns[place] >= far(); }
  void find_usual();  // from `ns`
  // Makes the steps from this place on so much shorter.
  void shorten(std::size_t from, double by_ns);
  // How many of the first steps do, and than all later ones: programs compile and fill caches in
  // them. 0 if they are many.
  std::size_t warming_up() const;
};

// `mended`: once the ranks found slow so far are as fast as the others.
Lengths lengths_of(const Evidence& e, bool mended = false);

}  // namespace tprof::why
