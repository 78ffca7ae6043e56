// Processes that share the work of a command: the first one runs it, and the others load their
// share of the files.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "interpose/base/not_copied.h"

namespace tprof::team {

class Team : NotCopied {
 public:
  virtual ~Team() = default;

  virtual std::size_t rank() const = 0;
  virtual std::size_t size() const = 0;
  // Both throw if the other process is gone. Messages between two processes stay in order.
  virtual void send(std::size_t to, const std::string& message) = 0;
  virtual std::string receive(std::size_t from) = 0;
};

using Shared = std::shared_ptr<Team>;  // null: this process is alone

// Requests of the first process to another one, which answers all except `end`.
enum class Ask : char { files = 'f', lines = 'l', end = 'e' };

// Called by the first process. `details`: for the other process. answer() throws what the other one
// threw.
void ask(Team& team, std::size_t of, Ask what, std::string_view details);
std::string answer(Team& team, std::size_t of);

// Tells all others that the work is done, with its exit code. A process that is gone is no error.
void end(Team& team, int code);

// The processes that mpirun or srun started together.

// Returns this process's team; null: it is alone. Throws std::runtime_error with advice if MPI has
// started several that can't reach each other.
Shared of_mpi();

// Returns the rank from the launcher's variables, without MPI; 0 if none.
long told_rank();

}  // namespace tprof::team
