// How long the steps take that count, and which of them take far longer than the others.
#pragma once

#include <algorithm>
#include <vector>

#include "why/cause.h"

namespace tprof::why {

struct Lengths {
  std::vector<double> ns;  // by place in Evidence::steps
  double usual = 0;
  double width = 0;  // of the usual steps: as a standard deviation of a normal distribution

  // A step that takes as long as this takes far longer than the others.
  double far() const { return std::max(1.25 * usual, usual + 8 * width); }
  bool far_longer(std::size_t place) const { return ns[place] >= far(); }
  // How many steps at the begin do, in which programs compile and fill caches; 0 if they are many.
  std::size_t warming_up() const;
};

// `mended`: once those ranks are as quick as others that were told.
Lengths lengths_of(const Evidence& e, bool mended = false);

}  // namespace tprof::why
