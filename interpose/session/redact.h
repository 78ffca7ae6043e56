// What looks like a secret is left out of what the trace says of a process.
#pragma once

#include <cstddef>
#include <string_view>

namespace tprof {

// The arguments of /proc/self/cmdline (each with its NUL), separated by spaces: "--api-token abc"
// becomes "--api-token ***". Both write a C string of at most `size` - 1 characters.
void redact_command(std::string_view arguments, char* to, std::size_t size);
// The value of an environment variable.
void redact_variable(std::string_view name, std::string_view value, char* to, std::size_t size);

}  // namespace tprof
