// Leaves secrets out of what the trace says about a process: values that are named as one (a token,
// a key, a password), keys of known shapes, and users of URLs.
#pragma once

#include <string_view>

#include "interpose/base/text.h"

namespace tprof {

// The arguments of /proc/self/cmdline (each with its NUL), separated by spaces: "--api-token abc"
// becomes "--api-token ***".
void redact_command(std::string_view arguments, FixedText& out);
// The value of an environment variable.
void redact_variable(std::string_view name, std::string_view value, FixedText& out);

}  // namespace tprof
