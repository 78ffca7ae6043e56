// The memory that the processes of a job had allocated (TPROF_MEMORY).
#pragma once

#include <vector>

#include "job/jobs.h"
#include "read/process.h"

namespace tprof::stats {

struct MemoryOfProcess {
  const read::Process* process = nullptr;
  read::MemoryUse use;
};

struct Memory {
  bool asked = false;  // by at least one process
  std::vector<MemoryOfProcess> uses;
};

Memory memory_of(const job::Job& job);

}  // namespace tprof::stats
