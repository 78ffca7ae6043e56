// The one way in which the library speaks: a line on standard error.
#pragma once

#include <cstdint>
#include <string_view>

namespace tprof {

// Writes "tprof: <what><detail><rest>\n". Raises no SIGPIPE, keeps errno. Says nothing where that
// would have to wait for a reader.
[[gnu::cold]] void say(std::string_view what, std::string_view detail = {},
                       std::string_view rest = {});

// The kinds of trouble that keep us from tracing as we should.
enum class Trouble : std::uint8_t {
  start,
  room,
  write,
  descriptor,
  removed,
  time,
  program,
  timing
};

// Says the same about a trouble, but only the first of each kind, since the others follow from it
// (a full disk has no room for the ring file, nor for lines).
[[gnu::cold]] void complain(Trouble trouble, std::string_view what, std::string_view detail = {},
                            std::string_view rest = {});

// Keeps a complaint about room until it is known whether the process is traced at all: where it is
// not, that is the one thing to say.
void hold_complaints();
void say_held();
void drop_held();  // and what follows of the kind

}  // namespace tprof
