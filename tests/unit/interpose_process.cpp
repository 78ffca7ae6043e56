// session/process.h: who this process is, from each launcher's variables and from /proc.
#include <sys/utsname.h>

#include <fstream>
#include <sstream>

#include "catch2.h"
#include "interpose/session/process.h"
#include "interpose_environment.h"

using namespace tprof;
using namespace tprof::test;

namespace {

// "NAME=VALUE ...", in words.
Variables variables_of(const std::string& words) {
  Variables found;
  std::istringstream all(words);
  for (std::string word; all >> word;) {
    found[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  }
  return found;
}

Process with(const std::string& variables) {
  // Launchers' variables that the test itself may have been started with.
  const Environment clean(variables_of(
      "RANK= WORLD_SIZE= LOCAL_RANK= TORCHELASTIC_RUN_ID= TORCHELASTIC_RESTART_COUNT= "
      "OMPI_COMM_WORLD_RANK= OMPI_COMM_WORLD_SIZE= PMI_RANK= PMI_SIZE= SLURM_PROCID= "
      "SLURM_NTASKS= SLURM_JOB_ID= SLURM_STEP_ID= SLURM_LOCALID= SLURM_RESTART_COUNT= PBS_JOBID= "
      "LSB_JOBID= PMIX_NAMESPACE="));
  const Environment launcher(variables_of(variables));
  Process p{};
  describe_process(true, p);
  return p;
}

}  // namespace

TEST_CASE("rank, world size and local rank come from the launcher") {
  const struct {
    const char* variables;
    std::int64_t rank, world, local;
  } launchers[] = {
      {"RANK=5 WORLD_SIZE=8 LOCAL_RANK=1", 5, 8, 1},
      {"OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=3", 3, 4, 3},
      {"MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_SIZE=2 MV2_COMM_WORLD_LOCAL_RANK=0", 1, 2, 0},
      {"PMI_RANK=9 PMI_SIZE=16 MPI_LOCALRANKID=1", 9, 16, 1},
      {"SLURM_STEP_ID=0 SLURM_PROCID=6 SLURM_NTASKS=8 SLURM_LOCALID=2", 6, 8, 2},
      {"", -1, -1, -1},
      // torchrun under Slurm or mpirun is believed before them.
      {"RANK=5 WORLD_SIZE=8 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 SLURM_PROCID=0 "
       "SLURM_NTASKS=2",
       5, 8, -1},
      // Half a launcher, nonsense and Slurm's single task say nothing about the rank.
      {"RANK=5", -1, -1, -1},
      {"RANK=8 WORLD_SIZE=8", -1, -1, -1},
      {"RANK=-1 WORLD_SIZE=8", -1, -1, -1},
      {"RANK=1x WORLD_SIZE=8", -1, -1, -1},
      {"SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=1", -1, -1, -1},
      {"RANK=junk WORLD_SIZE=8 PMI_RANK=1 PMI_SIZE=2", 1, 2, -1},
      // Slurm tells the local rank of a task whose launcher does not, but not that of one task that
      // starts all ranks of its node.
      {"PMI_RANK=3 PMI_SIZE=4 SLURM_STEP_ID=0 SLURM_PROCID=3 SLURM_NTASKS=4 SLURM_LOCALID=1", 3, 4,
       1},
      {"RANK=3 WORLD_SIZE=4 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_LOCALID=0", 3, 4,
       -1},
      // `sbatch -n4 SCRIPT` and `salloc -n4` with an interactive step: no rank 0 of their jobs.
      {"SLURM_JOB_ID=4 SLURM_PROCID=0 SLURM_NTASKS=4", -1, -1, -1},
      {"SLURM_JOB_ID=1 SLURM_STEP_ID=4294967290 SLURM_PROCID=0 SLURM_NTASKS=4", -1, -1, -1},
  };
  for (const auto& [variables, rank, world, local] : launchers) {
    INFO(variables);
    const Process p = with(variables);
    CHECK(p.rank == rank);
    CHECK(p.world_size == world);
    CHECK(p.local_rank == local);
  }
}

TEST_CASE("run, job and restart are named by the launcher, and none is no name") {
  const struct {
    const char *variables, *run, *job;
    std::int64_t restart;
  } launchers[] = {
      {"SLURM_JOB_ID=7 SLURM_STEP_ID=2", "7.2", "7", 0},
      {"SLURM_JOB_ID=1 SLURM_STEP_ID=4294967290 SLURM_PROCID=0 SLURM_NTASKS=4", "1", "1", 0},
      {"TORCHELASTIC_RUN_ID=abc SLURM_JOB_ID=7", "abc", "7", 0},
      {"TORCHELASTIC_RUN_ID=none SLURM_JOB_ID=7", "7", "7", 0},
      {"PBS_JOBID=12.host", nullptr, "12.host", 0},
      {"PMI_PORT=node:33683 PMI_ID=1", "", "", 0},  // `mpirun -pmi-port` of MPICH
      {"", "", "", 0},
      {"TORCHELASTIC_RESTART_COUNT=2", "", "", 2},
      {"SLURM_RESTART_COUNT=1", "", "", 1},
      {"SLURM_RESTART_COUNT=1 TORCHELASTIC_RESTART_COUNT=0", "", "", 0},
  };
  for (const auto& [variables, run, job, restart] : launchers) {
    INFO(variables);
    const Process p = with(variables);
    if (run != nullptr) CHECK(std::string(p.run_id) == run);
    CHECK(std::string(p.job_id) == job);
    CHECK(p.restart == restart);
  }
}

TEST_CASE("host, pid and start are those of this process") {
  Process p{};
  describe_process(true, p);
  utsname names{};
  uname(&names);
  CHECK(std::string(p.host) == names.nodename);
  CHECK(p.pid == getpid());
  std::string boot_id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id;
  CHECK(p.boot_id == boot_id);

  // The kernel's own answer is the boot time, in whole seconds, and ticks since then.
  std::uint64_t boot_s = 0;
  std::ifstream stat("/proc/stat");
  for (std::string word; stat >> word;) {
    if (word == "btime") stat >> boot_s;
  }
  std::ifstream own("/proc/self/stat");
  const std::string line((std::istreambuf_iterator<char>(own)), {});
  std::istringstream fields(line.substr(line.rfind(')') + 2));
  std::string field;
  for (int n = 3; n <= 22; ++n) fields >> field;
  CHECK(std::to_string(p.start_ticks) == field);
  CHECK(p.parent_pid == getppid());
  CHECK(p.parent_ticks != 0);
  CHECK(p.parent_ticks <= p.start_ticks);
  const double expected =
      static_cast<double>(boot_s) +
      static_cast<double>(p.start_ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
  CHECK(std::abs(static_cast<double>(p.start_ns) / 1e9 - expected) < 2);
}
