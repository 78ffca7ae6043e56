// cli/: what is taken from the arguments and the environment of a launch, and what a screen shows
// meanwhile.
#include <map>

#include "analysis_folder.h"
#include "catch2.h"
#include "cli/screen.h"
#include "launch/environment.h"

using namespace tprof;

namespace {

launch::Launch launched_by(const std::map<std::string, std::string>& variables) {
  return launch::launch_of([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  });
}

}  // namespace

TEST_CASE("the run id is the user's, else the launcher's") {
  CHECK(launched_by({}).run_id.empty());
  CHECK(launched_by({{"TORCHELASTIC_RUN_ID", "none"}}).run_id.empty());
  CHECK(launched_by({{"TORCHELASTIC_RUN_ID", "t"}, {"SLURM_JOB_ID", "5"}}).run_id == "t");
  CHECK(launched_by({{"SLURM_JOB_ID", "5"}}).run_id == "5");
  CHECK(launched_by({{"SLURM_JOB_ID", "5"}, {"SLURM_STEP_ID", "2"}}).run_id == "5.2");
  CHECK(launched_by({{"SLURM_JOB_ID", "5"}, {"SLURM_STEP_ID", "4294967290"}}).run_id == "5");
  CHECK(launched_by({{"TPROF_RUN_ID", "mine"}, {"SLURM_JOB_ID", "5"}}).run_id == "mine");
}

TEST_CASE("a Slurm batch script and the shell of salloc are no parallel tasks, a step is one") {
  CHECK_FALSE(launched_by({{"SLURM_JOB_ID", "5"}, {"SLURM_PROCID", "0"}}).task);
  CHECK_FALSE(
      launched_by({{"SLURM_JOB_ID", "5"}, {"SLURM_STEP_ID", "4294967290"}, {"SLURM_PROCID", "0"}})
          .task);
  CHECK(launched_by({{"SLURM_JOB_ID", "5"}, {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "3"}}).task ==
        3);
  CHECK(launched_by({{"TORCHELASTIC_RUN_ID", "t"}, {"RANK", "1"}}).task == 1);
  CHECK_FALSE(launched_by({{"RANK", "1"}}).task);
}

TEST_CASE("runs never share a folder, tasks of one launch do") {
  const test::Folder folder;
  const auto a = launch::make_run_folder(folder.path(), {"/usr/bin/python3"}, {});
  const auto b = launch::make_run_folder(folder.path(), {"/usr/bin/python3"}, {});
  CHECK(a != b);
  CHECK(a.filename().string().starts_with("python3-"));
  const launch::Launch task{"5.2", 1};
  CHECK(launch::make_run_folder(folder.path(), {"train me.sh"}, task) ==
        launch::make_run_folder(folder.path(), {"train me.sh"}, task));
  CHECK(std::filesystem::exists(folder.path() / "train_me.sh-5.2"));
}

TEST_CASE("a run has the name of the script that Python or a launcher runs") {
  using launch::name_of_run;
  CHECK(name_of_run({"/usr/bin/python3.11", "-u", "src/gpt.py", "--data", "x.py"}) == "gpt");
  CHECK(name_of_run({"python", "-m", "torch.distributed.run", "--nproc-per-node=2", "gpt.py"}) ==
        "gpt");
  CHECK(name_of_run({"torchrun", "--standalone", "train/fsdp.py"}) == "fsdp");
  CHECK(name_of_run({"accelerate", "launch", "--config_file", "a.yaml", "tune.py"}) == "tune");
  CHECK(name_of_run({"deepspeed", "pre.train.py"}) == "pre.train");
  CHECK(name_of_run({"mpirun", "-np", "8", "python", "gpt.py"}) == "gpt");
  CHECK(name_of_run({"./gpt.py", "--fast"}) == "gpt");
  // There no word is known to be a script that runs.
  CHECK(name_of_run({"python3", "-m", "trainer"}) == "python3");
  CHECK(name_of_run({"bin/trainer", "--config", "small.py"}) == "trainer");
}

TEST_CASE("Progress says how much of what, and how long it still takes") {
  using std::chrono::seconds;
  using tprof::cli::Of;
  using tprof::cli::progress_text;
  CHECK(progress_text("merging", std::uint64_t{1} << 30, std::uint64_t{4} << 30, Of::bytes,
                      seconds(3)) == "merging 25% of 4.00 GiB, 9 s left");
  CHECK(progress_text("reading", 999, 1000, Of::files, seconds(10)) ==
        "reading 99% of 1,000 files, 1 s left");
  CHECK(progress_text("reading", 0, 1000, Of::files, seconds(2)) == "reading 0% of 1,000 files");
  CHECK(progress_text("reading", 3, 2, Of::files, seconds(2)) ==
        "reading 100% of 2 files, 0 s left");
}
