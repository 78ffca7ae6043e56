// Sends requests to running processes through their ring files (interpose/format/control.h), and
// reports their answers.
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
  bool same_step = false;  // `argument` names the first step of a window, the same on all ranks
};

// Throws BadInput if it is no command.
Request request_of(const std::string& word, const std::string& argument);

// An asked process and the outcome.
struct Target {
  std::string name;  // "rank 3"
  std::optional<std::int64_t> rank;
  std::string host;
  std::int64_t pid = 0;
  std::filesystem::path ring;      // empty: none is visible from here
  std::string trouble{};           // why it could not be asked; empty: it was
  std::optional<Obeyed> answer{};  // nullopt: none
};

// `where`: a folder with rank files, or a pid. Throws BadInput if there is no process to ask.
std::vector<Target> targets_of(const std::filesystem::path& where, const job::Choice& choice);

// Asks them, and waits for their answers. If all ranks of a job are visible from here and the
// program marks its steps, all begin a window with the same future step; if a rank has already
// begun it, the next try is further ahead. Returns the final request.
Request ask(std::vector<Target>& targets, const Request& request);

bool is_well(const Target& target);
std::string to_text(const Request& request, const std::vector<Target>& targets);
std::string to_json(const Request& request, const std::vector<Target>& targets);

}  // namespace tprof::control
