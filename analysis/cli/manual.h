// Turns the option table into manual pages and completions of shells.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "cli/option_table.h"

namespace tprof::cli {

// Returns the parts of a row's examples: the lines that are commands, and what is said behind them.
struct Examples {
  std::string commands;
  std::string notes;
};
Examples examples_of(const CommandRow& row);

// Returns the words of an option's value if it is one of a few ("on|off|all"), else nothing.
std::vector<std::string> choices_of(const Option& option);

// Returns the names of an option: {"-o", "--output"}; that of an argument as it is.
std::vector<std::string> names_of(const Option& option);

// Return a page in man(7)'s language: tprof(1), which has the settings of the library too, and
// tprof-COMMAND(1).
std::string manual_of_all(std::span<const CommandRow> commands);
std::string manual_of(const CommandRow& command);

// Return a script that completes commands, options and their values.
std::string bash_completion(std::span<const CommandRow> commands);
std::string zsh_completion(std::span<const CommandRow> commands);
std::string fish_completion(std::span<const CommandRow> commands);

// The commands `tprof completion SHELL` and `tprof manual DIR`, as rows of the table.
std::vector<CommandRow> rows_about_the_table(Options& o);

}  // namespace tprof::cli
