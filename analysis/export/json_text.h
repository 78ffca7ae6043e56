#pragma once

#include <string>
#include <string_view>

namespace tprof::trace_export {

// Returns the text as a JSON string with its quotes, in ASCII. Anything that is not UTF-8 is
// replaced.
std::string json_text(std::string_view text);

}  // namespace tprof::trace_export
