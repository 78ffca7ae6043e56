// Several processes that do one piece of work together: the first one does it, and the others load
// their share of the files for it.
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
  // Both throw where the other process is gone. Messages from one to another keep their order.
  virtual void send(std::size_t to, const std::string& message) = 0;
  virtual std::string receive(std::size_t from) = 0;
};

using Shared = std::shared_ptr<Team>;  // null: this process is alone

// The first asks this of another one, and gets an answer, but none for `end`.
enum class Ask : char { files = 'f', lines = 'l', end = 'e' };

// The first one calls these. `details` are for who does it. The answer throws what that one threw.
void ask(Team& team, std::size_t of, Ask what, std::string_view details);
std::string answer(Team& team, std::size_t of);

// Tells all others that the work is done, and with which exit code. One that is gone is no error.
void end(Team& team, int code);

// The processes that mpirun or srun started together.

// Returns the team that MPI made this process one of; null: it is alone. Throws std::runtime_error
// that says what to do where MPI has started several and they can't reach each other.
Shared of_mpi();

// Returns the rank that the launcher tells; 0 if none. For where MPI can't be asked.
long told_rank();

}  // namespace tprof::team
