// Tells what a communicator is for: data, tensor, pipeline or expert parallelism, or the shards and
// replicas of FSDP. Its name says so, or what its ranks carry allows a guess.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "job/jobs.h"

namespace tprof::stats {

struct CommSummary;

// Goes by the words with which frameworks name groups (PyTorch's device meshes, Megatron). Empty if
// the name has none of them.
std::string_view role_of_name(std::string_view name);

// Sets role, role_guessed and role_sure where something is known. A guess needs calls of autograd
// threads, which tell what belongs to the backward pass.
void find_roles(const job::Job& job, std::vector<CommSummary>& comms);

// The roles that are sure, by the communicators' ids: their names say them, or what they carry does
// and other communicators of the job cross them as they should. Words for sentences:
// "tensor-parallel".
std::map<std::string, std::string, std::less<>> sure_roles(const job::Job& job);

}  // namespace tprof::stats
