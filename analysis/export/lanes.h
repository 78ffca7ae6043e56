// Writes lanes that only a merged trace has.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "export/line_editor.h"
#include "filter/filter.h"
#include "steps/found.h"
#include "why/spans.h"

namespace tprof::trace_export {

// A slice "step 7" for each step, of which `only` may choose some.
void append_steps(const std::vector<steps::Interval>& steps,
                  const std::optional<stats::StepList>& only, const Placement& to,
                  std::string& out);

void append_exposed(const why::Spans& exposed, const Placement& to, std::string& out);

}  // namespace tprof::trace_export
