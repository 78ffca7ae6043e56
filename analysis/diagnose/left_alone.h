// Finds copies that wait for a device that waits for somebody who is gone.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "diagnose/waits.h"

namespace tprof::diagnose {

class LeftAlone {
 public:
  LeftAlone(const Case& c, const Waits& waits);

  // True if the process stands in a copy, and somebody who shares a communicator with it ended
  // before it, with work left undone, when the copy had not stood for `long_ns`.
  bool holds(const read::Process& p, std::int64_t long_ns) const;

 private:
  // A process as a member of one of its communicators.
  struct Place {
    const Communicator* communicator;
    const Member* member;
  };

  // True if q called a collective that p did not; nullopt if they share none.
  std::optional<bool> ahead_of(const read::Process& q, const read::Process& p) const;

  const Case& case_;
  const Waits& waits_;
  std::map<const read::Process*, std::vector<Place>> places_;
  std::map<const Communicator*, Processes> gone_;  // the first of its members that ended
};

}  // namespace tprof::diagnose
