// Every option of every command, with its help: the one table of them.
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
    std::variant<bool*, int*, double*, std::string*, fs::path*, report::By*, Clock*, live::Format*,
                 std::vector<std::string>*, std::vector<fs::path>*, std::int64_t*>;

// An option, or what stands without a name.
struct Option {
  const char* name;
  OptionTarget to;
  const char* help;
  const char* value = nullptr;  // what help calls it; of a flag nothing
  bool required = false;
  void (*restrict_it)(CLI::Option*) = nullptr;
};

struct CommandRow {
  const char* name;
  const char* help;
  const char* examples;
  int (*execute)(const Options&);
  std::vector<Option> options;
};

// In the order in which --help lists them; what is given goes to `o`.
std::vector<CommandRow> commands(Options& o);

}  // namespace tprof::cli
