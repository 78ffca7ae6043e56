// Writes lanes that only a merged trace has.
#pragma once

#include <optional>
#include <vector>

#include "export/pen.h"
#include "export/placement.h"
#include "filter/filter.h"
#include "steps/found.h"
#include "why/spans.h"

namespace tprof::trace_export {

// A slice "step 7" for each step, of which `only` may choose some.
void write_steps(const std::vector<steps::Interval>& steps,
                 const std::optional<stats::StepList>& only, const Placement& to, Pen& out);

void write_exposed(const why::Spans& exposed, const Placement& to, Pen& out);

}  // namespace tprof::trace_export
