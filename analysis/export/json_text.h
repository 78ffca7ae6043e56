#pragma once

#include <string>
#include <string_view>

namespace tprof::trace_export {

// As JSON has a string, with its quotes, in ASCII: what is no UTF-8 is replaced.
std::string json_text(std::string_view text);

}  // namespace tprof::trace_export
