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
                               {"PBS_JOBID", ""},
                               {"LSB_JOBID", ""},
                               {"PMIX_NAMESPACE", ""}};

Process with(const Variables& variables) {
  const Environment clean(kNoLauncher);
  const Environment launcher(variables);
  return describe_process(true);
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
  check_ranks(with({{"SLURM_PROCID", "6"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "2"}}), 6, 8,
              2);
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
  check_ranks(with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}), -1, -1, -1);
  check_ranks(with({{"RANK", "junk"}, {"WORLD_SIZE", "8"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}),
              1, 2, -1);
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
  const Process p = describe_process(true);
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
