// What a communicator is for: data, tensor, pipeline or expert parallelism, the shards and replicas
// of FSDP. Its name says so, or what its ranks carry lets one guess.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "job/jobs.h"

namespace tprof::stats {

struct CommSummary;

// By the words that frameworks name groups with (PyTorch's device meshes, Megatron). Empty: none of
// them.
std::string_view role_of_name(std::string_view name);

// Sets role and role_guessed where something is known. A guess needs calls of autograd threads,
// which tell what belongs to the backward pass.
void find_roles(const job::Job& job, std::vector<CommSummary>& comms);

}  // namespace tprof::stats
