// Draws arrows from a call on the host to its time on the device, for viewers of a merged trace.
#pragma once

#include <simdjson.h>

#include <string>

#include "export/line_editor.h"

namespace tprof::trace_export {

// Appends the two events of the arrow to the DEVICE line `line`, each with a line break before it.
// Throws read::Malformed.
void append_flow(const read::Line& line, const Placement& to, simdjson::dom::parser& parser,
                 std::string& out);

}  // namespace tprof::trace_export
