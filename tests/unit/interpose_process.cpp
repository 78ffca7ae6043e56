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

// Launchers' variables that the test itself may have been started with.
const Variables kNoLauncher = {{"RANK", ""},
                               {"WORLD_SIZE", ""},
                               {"LOCAL_RANK", ""},
                               {"TORCHELASTIC_RUN_ID", ""},
                               {"TORCHELASTIC_RESTART_COUNT", ""},
                               {"OMPI_COMM_WORLD_RANK", ""},
                               {"OMPI_COMM_WORLD_SIZE", ""},
                               {"PMI_RANK", ""},
                               {"PMI_SIZE", ""},
                               {"SLURM_PROCID", ""},
                               {"SLURM_NTASKS", ""},
                               {"SLURM_JOB_ID", ""},
                               {"SLURM_STEP_ID", ""},
                               {"SLURM_LOCALID", ""},
                               {"SLURM_RESTART_COUNT", ""},
                               {"PBS_JOBID", ""},
                               {"LSB_JOBID", ""},
                               {"PMIX_NAMESPACE", ""}};

Process with(const Variables& variables) {
  const Environment clean(kNoLauncher);
  const Environment launcher(variables);
  Process p{};
  describe_process(true, p);
  return p;
}

void check_ranks(const Process& p, std::int64_t rank, std::int64_t world, std::int64_t local) {
  CHECK(p.rank == rank);
  CHECK(p.world_size == world);
  CHECK(p.local_rank == local);
}

}  // namespace

TEST_CASE("rank, world size and local rank come from each launcher") {
  check_ranks(with({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}}), 5, 8, 1);
  check_ranks(with({{"OMPI_COMM_WORLD_RANK", "3"},
                    {"OMPI_COMM_WORLD_SIZE", "4"},
                    {"OMPI_COMM_WORLD_LOCAL_RANK", "3"}}),
              3, 4, 3);
  check_ranks(with({{"MV2_COMM_WORLD_RANK", "1"},
                    {"MV2_COMM_WORLD_SIZE", "2"},
                    {"MV2_COMM_WORLD_LOCAL_RANK", "0"}}),
              1, 2, 0);
  check_ranks(with({{"PMI_RANK", "9"}, {"PMI_SIZE", "16"}, {"MPI_LOCALRANKID", "1"}}), 9, 16, 1);
  check_ranks(with({{"SLURM_STEP_ID", "0"},
                    {"SLURM_PROCID", "6"},
                    {"SLURM_NTASKS", "8"},
                    {"SLURM_LOCALID", "2"}}),
              6, 8, 2);
  check_ranks(with({}), -1, -1, -1);
}

TEST_CASE("torchrun under Slurm or mpirun is believed before them") {
  check_ranks(with({{"RANK", "5"},
                    {"WORLD_SIZE", "8"},
                    {"OMPI_COMM_WORLD_RANK", "1"},
                    {"OMPI_COMM_WORLD_SIZE", "2"},
                    {"SLURM_PROCID", "0"},
                    {"SLURM_NTASKS", "2"}}),
              5, 8, -1);
}

TEST_CASE("half a launcher, nonsense and Slurm's single task say nothing about the rank") {
  check_ranks(with({{"RANK", "5"}}), -1, -1, -1);
  check_ranks(with({{"RANK", "8"}, {"WORLD_SIZE", "8"}}), -1, -1, -1);
  check_ranks(with({{"RANK", "-1"}, {"WORLD_SIZE", "8"}}), -1, -1, -1);
  check_ranks(with({{"RANK", "1x"}, {"WORLD_SIZE", "8"}}), -1, -1, -1);
  check_ranks(with({{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}), -1, -1,
              -1);
  check_ranks(with({{"RANK", "junk"}, {"WORLD_SIZE", "8"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}),
              1, 2, -1);
}

TEST_CASE("Slurm tells the local rank of a task whose launcher does not") {
  const Variables pmi2 = {{"PMI_RANK", "3"},     {"PMI_SIZE", "4"},     {"SLURM_STEP_ID", "0"},
                          {"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "1"}};
  check_ranks(with(pmi2), 3, 4, 1);
  // One task that starts all ranks of its node.
  check_ranks(with({{"RANK", "3"},
                    {"WORLD_SIZE", "4"},
                    {"SLURM_STEP_ID", "0"},
                    {"SLURM_PROCID", "0"},
                    {"SLURM_NTASKS", "1"},
                    {"SLURM_LOCALID", "0"}}),
              3, 4, -1);
}

// As Slurm 22.05 sets them for `sbatch -n4 SCRIPT`, and for `salloc -n4` with an interactive step.
TEST_CASE("what a batch script or the shell of salloc starts is not rank 0 of its job") {
  check_ranks(with({{"SLURM_JOB_ID", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}), -1, -1,
              -1);
  const Process shell = with({{"SLURM_JOB_ID", "1"},
                              {"SLURM_STEP_ID", "4294967290"},
                              {"SLURM_PROCID", "0"},
                              {"SLURM_NTASKS", "4"}});
  check_ranks(shell, -1, -1, -1);
  CHECK(std::string(shell.run_id) == "1");
}

TEST_CASE("each step of a Slurm job is a run, which may be requeued") {
  const Variables step = {{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "2"}};
  CHECK(std::string(with(step).run_id) == "7.2");
  CHECK(std::string(with(step).job_id) == "7");
  CHECK(with({{"SLURM_RESTART_COUNT", "1"}}).restart == 1);
  CHECK(with({{"SLURM_RESTART_COUNT", "1"}, {"TORCHELASTIC_RESTART_COUNT", "0"}}).restart == 0);
}

// With `mpirun -pmi-port`, PMI_ID is the rank.
TEST_CASE("MPICH has no name for a run") {
  CHECK(std::string(with({{"PMI_PORT", "node:33683"}, {"PMI_ID", "1"}}).run_id).empty());
}

TEST_CASE("the run is named by the launcher, and none is no name") {
  CHECK(std::string(with({{"TORCHELASTIC_RUN_ID", "abc"}, {"SLURM_JOB_ID", "7"}}).run_id) == "abc");
  CHECK(std::string(with({{"TORCHELASTIC_RUN_ID", "none"}, {"SLURM_JOB_ID", "7"}}).run_id) == "7");
  CHECK(std::string(with({}).run_id).empty());
  CHECK(std::string(with({{"PBS_JOBID", "12.host"}}).job_id) == "12.host");
  CHECK(with({{"TORCHELASTIC_RESTART_COUNT", "2"}}).restart == 2);
  CHECK(with({}).restart == 0);
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
