// The commands of `tprof`: what they take from the command line (option_table.cpp explains it), and
// the functions that run them and return the exit code.
#pragma once

#include <chrono>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "budget/model.h"
#include "filter/filter.h"
#include "job/choice.h"
#include "team/team.h"

namespace tprof::cli {
namespace fs = std::filesystem;

// Exit codes of the contract.
enum Exit : int { kOk = 0, kFinding = 1, kBadUsage = 2 };

// Runs the command line, and returns the exit code. An error is one line on standard error.
int execute(int argc, char** argv);

// The options of the command line. Each command uses those that it takes. Empty strings were not
// given.
struct Options {
  std::vector<fs::path> paths;
  std::vector<std::string> words;  // a command, or doctor's paths
  fs::path folder;
  fs::path output;
  std::vector<std::string> with;
  fs::path sqlite;
  fs::path csv;
  fs::path parquet;
  job::Choice choice;
  std::string run_id;
  std::string events;
  std::string quota;
  std::string ranks;   // for run: TPROF_RANKS
  filter::Words only;  // for commands that read traces
  std::string peak;
  std::int64_t memory_mib = 1024;
  bool quiet = false;
  bool json = false;
  bool per_rank = false;
  bool lines = false;
  bool positions = false;
  bool no_lines = false;
  bool force = false;
  std::string max_size;
  std::string by;
  bool verbose = false;
  std::string clock;
  double stuck_after_s = 30;
  double interval_s = 0;  // 0: not given
  bool once = false;
  bool from_start = false;
  std::string format;
  fs::path textfile;
  std::string listen;
  std::string command;  // for findings, or ctl's command
  std::string argument;
  std::vector<std::string> handlers;
  double handler_wait_s = 10;
  std::string on_window;
  int keep_windows = -1;  // -1: all
  bool with_torch_profiler = false;
  std::string torch_steps;
  int top = 0;  // 0: not given
  std::string hist;
  std::int64_t epoch = -1;  // -1: all of them
  int bins = 0;             // 0: the default number
  bool kineto = false;
  bool inspector = false;
  bool mpi = false;
  std::string ways;          // for budget: fsdp+tp
  budget::Model model;       // as given: with short type names, tolerance in percent
  double micro_batches = 0;  // 0: not given
  std::string accumulate;
  fs::path budget_file;
  fs::path write;
  std::int64_t steps = 0;  // 0: as found
  fs::path run_a;
  fs::path run_b;
  std::vector<std::string> fail_on;
  team::Shared team{};  // the processes that share this command; null: this one alone
};

// Converts the seconds of an option.
inline std::chrono::nanoseconds seconds(double s) {
  return std::chrono::nanoseconds(std::llround(s * 1e9));
}

// Writes the page of tprof report to standard output ("-") or to a file, which gets its name when
// it is complete. Replaces an older page. Throws BadInput if anything else has that name.
void write_page(const std::string& page, const fs::path& to);

int run(const Options& o);
int merge(const Options& o);
int export_traces(const Options& o);
int replay(const Options& o);
int summary(const Options& o);
int check(const Options& o);
int report_of(const Options& o);
int budget(const Options& o);
int diff_runs(const Options& o);
int doctor(const Options& o);
int coverage(const Options& o);
int recover(const Options& o);
int anonymize(const Options& o);
int top(const Options& o);
int tail(const Options& o);
int metrics(const Options& o);
int watch(const Options& o);
int ctl(const Options& o);
int completion(const Options& o);  // these two are made from the option table
int manual(const Options& o);

}  // namespace tprof::cli
