#include "export/other_clock.h"

#include <fmt/format.h>

#include "export/pen.h"

namespace tprof::trace_export {

std::string OtherClock::sentence() const {
  if (!shift) return "the wall clock: " + why;
  return fmt::format("refined by {} collective{}, shifted {} us", shift->pairs,
                     shift->pairs == 1 ? "" : "s", micros(shift->ns));
}

}  // namespace tprof::trace_export
