// Why a job takes the time that it takes: what is known of its steps, and what would make them
// shorter.
#pragma once

#include <optional>

#include "collect/passes.h"
#include "diagnose/finding.h"
#include "steps/found.h"
#include "why/times.h"
#include "why/transfers.h"
#include "why/wait_table.h"

namespace tprof::why {

struct Why {
  std::optional<Times> times{};
  Transfers transfers{};
  WaitTable waits{};
  Peak peak{};          // what the user says of it
  Cell mean{};          // of the steps that count, over all ranks; if there are any
  double unmet_ns = 0;  // of its exposed time: waiting or transfers, which is not known
  diagnose::Findings findings{};

  bool known() const { return times && times->known(); }
  std::string why_not() const { return times ? times->why : "the lines were not read"; }
};

// Takes the lines of the next two passes; `found`, which the first of them has to fill, and `to`
// have to stay until then. Call this behind steps::want().
void want(collect::Passes& passes, const steps::Found& found, Why& to);

}  // namespace tprof::why
