// Asks running processes to do something, through their ring files (interpose/format/control.h),
// and says what they answered.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "interpose/format/control.h"
#include "job/choice.h"

namespace tprof::control {

struct Request {
  Command command;
  std::string argument;
  bool same_step = false;  // `argument` says with which step of all ranks a window begins
};

// Throws BadInput if that is no command.
Request request_of(const std::string& word, const std::string& argument);

// A process that is asked, and the outcome.
struct Target {
  std::string name;  // "rank 3"
  std::optional<std::int64_t> rank;
  std::string host;
  std::int64_t pid = 0;
  std::filesystem::path ring;      // empty: none is in sight
  std::string trouble{};           // why it could not be asked; empty: it was
  std::optional<Obeyed> answer{};  // nothing: it gave none
};

// `where` is a folder with rank files, or a pid. Throws BadInput if no process is to be asked
// there.
std::vector<Target> targets_of(const std::filesystem::path& where, const job::Choice& choice);

// Asks them, and waits for their answers. All ranks of a job begin a window with the same step, as
// far as all of them are in sight. That step is ahead of all ranks. If a rank had begun it before
// it heard, the next try is further ahead. Only the program's own marks say which steps of two
// ranks are the same. Returns what they were asked for in the end.
Request ask(std::vector<Target>& targets, const Request& request);

bool is_well(const Target& target);
std::string to_text(const Request& request, const std::vector<Target>& targets);
std::string to_json(const Request& request, const std::vector<Target>& targets);

}  // namespace tprof::control
