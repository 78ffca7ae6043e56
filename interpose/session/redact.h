// Leaves secrets out of the process's description: values with names of secrets (token, key,
// password), keys of known shapes, and users in URLs.
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
