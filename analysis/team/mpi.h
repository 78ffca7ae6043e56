// The processes that mpirun or srun started together.
#pragma once

#include "team/team.h"

namespace tprof::team {

// Returns the team that MPI made this process one of; null: it is alone. Throws std::runtime_error
// that says what to do where MPI has started several and they can't reach each other.
Shared of_mpi();

// True if the environment says so, as launchers make it for each process of a step that they start
// themselves. Variables of a batch script, which runs once for many tasks, do not count, nor those
// that a process of the step hands on, unless TPROF_MPI asks for it.
bool told_to_be_of_several();

// Returns the rank that the launcher tells; 0 if none. For where MPI can't be asked.
long told_rank();

}  // namespace tprof::team
