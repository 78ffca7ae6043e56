// All output of the library goes through here: lines on standard error.
#pragma once

#include <cstdint>
#include <string_view>

namespace tprof {

// Writes "tprof: <what><detail><rest>\n". Raises no SIGPIPE and keeps errno. Writes nothing if it
// would have to wait for a reader.
[[gnu::cold]] void say(std::string_view what, std::string_view detail = {},
                       std::string_view rest = {});

// Kinds of trouble in tracing.
enum class Trouble : std::uint8_t { start, room, write, descriptor, removed, time, timing };

// As say(), but only for the first trouble of each kind, since others follow from it (a full disk
// has no room for the ring file, nor for lines).
[[gnu::cold]] void complain(Trouble trouble, std::string_view what, std::string_view detail = {},
                            std::string_view rest = {});

}  // namespace tprof
