// The one way in which the library speaks: a line on standard error.
#pragma once

#include <string_view>

namespace tprof {

// Writes "tprof: <what><detail><rest>\n". Raises no SIGPIPE, keeps errno.
[[gnu::cold]] void say(std::string_view what, std::string_view detail = {},
                       std::string_view rest = {});

// The same for what keeps us from tracing as we should: only the first is said, since the others
// follow from it (a full disk has no room for the ring file, nor for lines).
[[gnu::cold]] void complain(std::string_view what, std::string_view detail = {},
                            std::string_view rest = {});

}  // namespace tprof
