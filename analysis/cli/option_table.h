// The one table of every option of every command, with its help.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "cli/commands.h"

namespace CLI {
class Option;
}

namespace tprof::cli {

using OptionTarget =
    std::variant<bool*, int*, double*, std::string*, fs::path*, report::By*, trace_export::Clock*,
                 live::Format*, std::vector<std::string>*, std::vector<fs::path>*, std::int64_t*>;

// An option, or an argument without a name.
struct Option {
  const char* name;
  OptionTarget to;
  const char* help;
  const char* value = nullptr;  // what help calls its value; null for a flag
  bool required = false;
  void (*restrict_it)(CLI::Option*) = nullptr;
};

// The filters that a command can honour: bits.
enum Filters : unsigned {
  kRanks = 1,
  kSteps = 2,
  kOps = 4,
  kSizes = 8,
  kComm = 16,
  kPhase = 32,
  kAllFilters = 63
};

struct CommandRow {
  const char* name;
  const char* help;
  const char* examples;
  int (*execute)(const Options&);
  std::vector<Option> options;
  unsigned filters = 0;
  bool together = false;  // processes that MPI started share the work, and the first one prints
};

// Returns the commands in the order in which --help lists them. Values that are given go to `o`.
std::vector<CommandRow> commands(Options& o);

// The options of these filters. commands() puts them behind the command's own.
std::vector<Option> filter_rows(Options& o, unsigned which);

// Those of top, tail, metrics, watch and ctl.
std::vector<CommandRow> live_rows(Options& o, const Option& run_id, const Option& attempt,
                                  const Option& stands_for);

// That of `tprof budget`.
CommandRow budget_row(Options& o, const Option& paths, const Option& run_id, const Option& attempt);

}  // namespace tprof::cli
