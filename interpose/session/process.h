// The identity of this process, for the header.
#pragma once

#include <cstdint>

namespace tprof {

struct ProcessId {
  std::int32_t pid;
  std::uint64_t start_ns;
};

struct Process {
  char host[65];
  char boot_id[40];
  std::int32_t pid;
  std::uint32_t pid_namespace;  // inode of /proc/self/ns/pid, 0: not known, or /proc is of another
  std::uint64_t start_ticks;    // /proc/self/stat, field 22: clock ticks since boot
  std::uint64_t start_ns;       // CLOCK_REALTIME, from start_ticks
  ProcessId forked_from;        // a traced process; pid 0: none
  std::int32_t parent_pid;      // the process that started it
  std::uint64_t parent_ticks;   // its start_ticks; 0: not known
  std::uint64_t rendezvous;     // hash of MASTER_ADDR and MASTER_PORT, 0: none
  std::int64_t rank;            // -1: unknown
  std::int64_t world_size;      // -1: unknown
  std::int64_t local_rank;      // -1: unknown
  std::int64_t restart;         // torchrun's restart count, or Slurm's, 0 if none
  char run_id[128];             // the launcher's id, "" if none
  char job_id[64];              // for %j
  char command[4096];           // arguments, separated by spaces
};

// True if a process of this pid namespace with that start time has not ended.
bool process_runs(std::int32_t pid, std::uint64_t start_ticks);

// Fills `p`, which is zero. `redact` leaves what looks like a secret out of the command. Large
// objects are not on the stack: the calling thread may have the smallest one.
void describe_process(bool redact, Process& p);

}  // namespace tprof
