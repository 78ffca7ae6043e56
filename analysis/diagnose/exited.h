// With which status ranks ended by themselves.
#pragma once

#include <optional>
#include <string>

#include "diagnose/who.h"

namespace tprof::diagnose {

// Returns what all of these gave to exit(); nullopt: that differs, or is not known of all.
std::optional<std::string> exit_status_of(const Processes& closed);

}  // namespace tprof::diagnose
