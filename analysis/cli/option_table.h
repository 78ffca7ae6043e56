// The table of all options of all commands, with their help.
#pragma once

#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "cli/commands.h"

namespace tprof::cli {

inline constexpr double kNoMost = std::numeric_limits<double>::max();
inline constexpr double kAboveZero = std::numeric_limits<double>::min();

// The numbers that an option accepts, and an example for messages.
struct Numbers {
  double least = 0;
  double most = kNoMost;
  const char* example = "";
  enum Of { any, whole, seconds } of = any;
};

using OptionTarget = std::variant<bool*, int*, std::int64_t*, double*, std::string*, fs::path*,
                                  std::vector<std::string>*, std::vector<fs::path>*>;

// An option, or an argument without a name.
struct Option {
  std::string names;  // "-o,--output"
  OptionTarget to;
  std::string help;
  std::string value{};  // name of its value in help, or its words: "on|off|all"; empty for a flag
  Numbers numbers{};
  bool required = false;
  const char* only_with = nullptr;  // another option of the command

  std::vector<std::string> list() const;   // {"-o", "--output"}
  std::vector<std::string> words() const;  // accepted words, if these are few
  bool is_argument() const { return names[0] != '-'; }
  bool is_flag() const { return std::holds_alternative<bool*>(to); }
};

// Options that several commands share: bits.
enum Shared : unsigned {
  kRanks = 1,
  kSteps = 2,
  kOps = 4,
  kSizes = 8,
  kComm = 16,
  kPhase = 32,
  kAllFilters = 63,
  kChoice = 64,  // --run and --attempt
};

struct CommandRow {
  const char* name;
  const char* help;
  const char* examples;  // commands, each after two blanks, and text about them
  int (*execute)(const Options&);
  std::vector<Option> options;
  unsigned shared = 0;
  bool together = false;              // MPI processes share the work, and the first one prints
  std::vector<std::string> one_of{};  // one of these options is required
  bool or_none = false;               // none of these is fine too
};

// Returns the commands in the order of --help. Given values go to `o`.
std::vector<CommandRow> commands(Options& o);

}  // namespace tprof::cli
