// A command for running processes, as the user typed it.
#pragma once

#include <string>

#include "interpose/format/control.h"

namespace tprof::control {

struct Request {
  Command command;
  std::string argument;
  bool same_step = false;  // `argument` says with which step of all ranks a window begins
};

// Throws BadInput if that is no command.
Request request_of(const std::string& word, const std::string& argument);

}  // namespace tprof::control
