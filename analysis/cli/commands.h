// The commands of `tprof`: what each takes from the command line (command_line.cpp says what its
// options mean) and the function that does it, whose result is the exit code.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/input.h"
#include "stats/summary.h"

namespace tprof::cli {
namespace fs = std::filesystem;

// Exit codes of the contract.
enum Exit : int { kOk = 0, kFinding = 1, kBadUsage = 2 };

struct RunOptions {
  fs::path out;
  std::string run_id;
  std::string events;
  std::string quota;
  std::string ranks;
  bool quiet = false;
  std::vector<std::string> command;
};
int run(const RunOptions& o);

struct MergeOptions {
  std::vector<fs::path> paths;
  fs::path output;
  std::string ranks;
  Choice choice;
};
int merge(const MergeOptions& o);

struct SummaryOptions {
  std::vector<fs::path> paths;
  Choice choice;
  bool json = false;
  bool per_rank = false;
  bool lines = false;
  report::By by = report::By::size;
};
int summary(const SummaryOptions& o);

struct CheckOptions {
  std::vector<fs::path> paths;
  Choice choice;
  bool json = false;
  bool no_lines = false;
  double stuck_after_s = 30;
};
int check(const CheckOptions& o);

struct DoctorOptions {
  std::vector<std::string> words;
  Choice choice;
  bool json = false;
};
int doctor(const DoctorOptions& o);

struct CoverageOptions {
  bool json = false;
};
int coverage(const CoverageOptions& o);

struct RecoverOptions {
  std::vector<fs::path> paths;
  bool force = false;
};
int recover(const RecoverOptions& o);

struct AnonymizeOptions {
  std::vector<fs::path> paths;
  fs::path output;
};
int anonymize(const AnonymizeOptions& o);

}  // namespace tprof::cli
