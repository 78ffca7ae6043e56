// Parses the command line, and runs the command that it asks for.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <exception>
#include <span>
#include <sstream>
#include <type_traits>
#include <variant>
#include <vector>

#include "cli/build.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/option_table.h"
#include "cli/screen.h"
#include "interpose/format/schema.h"
#include "launch/environment.h"
#include "read/error.h"
#include "run/lines.h"
#include "team/team.h"
#include "text/misspelt.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::cli {
namespace {

// If standard input, output or error was closed before the start, keeps our files from getting its
// number: messages would go into them. It stays unusable, and closed for children.
void hold_standard_files() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) != -1) continue;
    const int held = open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    if (held > STDERR_FILENO) close(held);
  }
}

// CLI11 treats an argument in brackets as a list, but here it is one word, for instance of the
// command of `tprof run`. So it gets a mark in front while CLI11 parses.
constexpr char kMark = '\x01';

// Mentions a high limit only if it was exceeded.
std::string expected(const Numbers& n, double found) {
  constexpr double kLarge = 1e6;
  constexpr const char* kWhat[] = {"a number", "a whole number", "a number of seconds"};
  const std::string limits = n.most < kLarge || (n.most != kNoMost && n.most < found)
                                 ? fmt::format("from {:.10g} to {:.10g}", n.least, n.most)
                             : n.least == kAboveZero ? "above 0"
                                                     : fmt::format("of {:.10g} or more", n.least);
  return fmt::format("{} {}, such as {}", kWhat[n.of], limits, n.example);
}

// Takes the values given for an option. Throws with what was expected.
void take(const Option& option, std::vector<std::string> values) {
  for (std::string& value : values) {
    if (value.starts_with(kMark)) value.erase(0, 1);
  }
  const auto refuse = [&](const std::string& what, const std::string& found) {
    throw CLI::ValidationError(option.list().back(),
                               fmt::format("expected {}; found {}", what, found));
  };
  if (!option.is_argument() && std::ranges::find(values, "") != values.end()) {
    refuse("a value", "none: is a variable unset?");
  }
  const std::vector<std::string> words = option.words();
  if (!words.empty() && std::ranges::find(words, values[0]) == words.end()) {
    refuse("one of " + option.value, values[0]);
  }
  const auto number = [&](auto of) {
    const Numbers& limits = option.numbers;
    const bool is_number = CLI::detail::lexical_cast(values[0], of);
    const auto value = static_cast<double>(of);
    if (!is_number || !(limits.least <= value && value <= limits.most)) {  // rejects NaN
      refuse(expected(limits, is_number ? value : 0), "'" + values[0] + "'");
    }
    return of;
  };
  const auto set = [&]<typename T>(T* to) {
    if constexpr (std::is_arithmetic_v<T>) {
      *to = static_cast<T>(option.numbers.of == Numbers::whole ? number(std::int64_t{})
                                                               : number(0.0));
    } else if constexpr (std::is_constructible_v<T, std::string>) {
      *to = values[0];
    } else {
      to->assign(values.begin(), values.end());
    }
  };
  std::visit(set, option.to);
}

void add_options(const CommandRow& command, CLI::App* to) {
  for (const Option& option : command.options) {
    if (option.is_flag()) {
      to->add_flag(option.names, *std::get<bool*>(option.to), option.help);
      continue;
    }
    const auto take_values = [&option](const CLI::results_t& values) {
      take(option, values);
      return true;
    };
    CLI::Option* added = to->add_option(option.names, take_values, option.help);
    if (!option.value.empty()) added->option_text(option.value);
    added->required(option.required);
    const auto* words = std::get_if<std::vector<std::string>*>(&option.to);
    if (words == nullptr && !std::holds_alternative<std::vector<fs::path>*>(option.to)) continue;
    // A repeated option has one value each time.
    added->expected(CLI::detail::expected_max_vector_size)->allow_extra_args(option.is_argument());
    if (option.names == "CMD") to->positionals_at_end();
  }
}

std::string did_you_mean(std::string_view near) {
  return near.empty() ? "" : fmt::format(": did you mean {}?", near);
}

// Returns the command that the first word names; null if it is an option of tprof itself. Throws
// for anything else.
const CommandRow* known_command(std::span<const CommandRow> commands,
                                const std::vector<std::string>& words) {
  constexpr std::string_view kOwnOptions[] = {"--help", "-h", "--version", "-V"};
  if (words.empty()) {
    throw read::BadInput(
        "expected a command, such as tprof run -- CMD, or tprof report DIR (tprof --help lists "
        "them)");
  }
  const std::string& word = words[0];
  const auto named = std::ranges::find(commands, word, &CommandRow::name);
  if (named != commands.end()) return &*named;
  if (std::ranges::find(kOwnOptions, word) != std::end(kOwnOptions)) return nullptr;
  throw read::BadInput(fmt::format(
      "expected a command, found '{}'{} (tprof --help lists them)", word,
      did_you_mean(word.starts_with('-') ? nearest(word, kOwnOptions, 2)
                                         : nearest(word, commands, 0, &CommandRow::name))));
}

// Returns the words of the command line, with the commands help and version turned into options:
// "help merge" into "merge --help".
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words == std::vector<std::string>{"version"}) words = {"--version"};
  if (!words.empty() && words.size() <= 2 && words[0] == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  return words;
}

// Returns what the first unknown option may mean.
std::string meant_option(const CommandRow& command, const std::vector<std::string>& words) {
  std::vector<std::string> names = {"--help"};
  for (const Option& option : command.options) {
    for (std::string& name : option.list()) names.push_back(std::move(name));
  }
  for (std::size_t i = 1; i < words.size() && words[i] != "--"; ++i) {
    const std::string_view word = std::string_view(words[i]).substr(0, words[i].find('='));
    const bool known = !word.starts_with("--") || std::ranges::find(names, word) != names.end();
    if (!known) return did_you_mean(nearest(word, names, 2));
  }
  return "";
}

// Takes the newest run if a command that allows it got neither PATH nor DIR.
void take_newest_run(const CommandRow& command, Options& o) {
  for (const Option& option : command.options) {
    if (option.required) continue;
    const auto* paths = std::get_if<std::vector<fs::path>*>(&option.to);
    if (paths != nullptr && *paths == &o.paths && o.paths.empty()) o.paths = {newest_run()};
    const auto* folder = std::get_if<fs::path*>(&option.to);
    if (folder != nullptr && *folder == &o.folder && o.folder.empty()) o.folder = newest_run();
  }
}

std::vector<std::string> marked(std::vector<std::string> words) {
  for (std::string& word : words) {
    if (word.starts_with('[')) word.insert(word.begin(), kMark);
  }
  std::ranges::reverse(words);  // CLI11 wants them reversed
  return words;
}

// "--hist NAME"
std::string shown(const Option& option) {
  return option.list().front() + (option.value.empty() ? "" : " " + option.value);
}

// Throws if an option was given without the one that it needs, or if none of several required
// alternatives was given.
void need_others(const CommandRow& command, const CLI::App& given) {
  std::vector<std::string> choice;
  std::size_t chosen = 0;
  for (const Option& option : command.options) {
    const bool is_given = given.count(option.list().front()) != 0;
    if (std::ranges::count(command.one_of, option.names) != 0) {
      choice.push_back(shown(option));
      chosen += is_given;
    }
    if (!is_given || option.only_with == nullptr || given.count(option.only_with) != 0) continue;
    const auto other = std::ranges::find(command.options, option.only_with, &Option::names);
    throw read::BadInput(fmt::format("{}: only with {}", option.names, shown(*other)));
  }
  if (choice.empty() || chosen == 1 || (chosen == 0 && command.or_none)) return;
  const std::string last = choice.back();
  choice.pop_back();
  throw read::BadInput(fmt::format("expected one of {} and {}", fmt::join(choice, ", "), last));
}

int fail(const std::string& error) {
  text::unwritten();  // what was printed so far comes first
  text::say("tprof: {}\n", text::printable(error));
  return kBadUsage;
}

// Returns the exit code, if all output could be written.
int ended(int code) {
  const int error = text::unwritten();
  return error == 0 ? code : fail(fmt::format("standard output: {}", std::strerror(error)));
}

int executed(const CommandRow& command, const Options& options) try {
  return ended(command.execute(options));
} catch (const fs::filesystem_error& e) {
  return fail(fmt::format("{}: {}", e.path1().string(), e.code().message()));
} catch (const std::exception& e) {
  return fail(e.what());
}

// Runs a command in one of several MPI processes: only the first one prints.
int run_together(const CommandRow& command, Options& options) {
  try {
    options.team = team::of_mpi();
  } catch (const std::exception& e) {
    const bool first = team::told_rank() == 0;
    if (first) fail(e.what());
    // A launcher kills all processes once one has failed: gives the first the time to say why.
    if (!first) sleep(1);
    return kBadUsage;
  }
  if (options.team && options.team->rank() != 0) {
    try {
      return run::work_for(*options.team);
    } catch (const std::exception&) {  // another process is gone; the first one says so
      return kBadUsage;
    }
  }
  const int code = executed(command, options);
  if (options.team) team::end(*options.team, code);
  options.team.reset();  // from here on the launcher may kill this process
  return code;
}

}  // namespace

int execute(int argc, char** argv) {
  CLI::App app("Counts and times the communication of a training job.", "tprof");
  app.set_version_flag("-V,--version", fmt::format("tprof {} ({}), commit {}, {}", kVersion,
                                                   kSchema, kCommit, kCompiler));
  app.require_subcommand(1);
  Options options;
  const std::vector<CommandRow> all = commands(options);
  const std::vector<std::string> words = words_of(argc, argv);
  const CommandRow* given = nullptr;
  app.failure_message([&](const CLI::App*, const CLI::Error& e) {
    const bool misspelt = dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr ||
                          dynamic_cast<const CLI::RequiredError*>(&e) != nullptr;
    return fmt::format("tprof: {}{} (see tprof{} --help)\n", text::printable(e.what()),
                       misspelt && given != nullptr ? meant_option(*given, words) : "",
                       given != nullptr ? fmt::format(" {}", given->name) : "");
  });
  try {
    hold_standard_files();
    given = known_command(all, words);
    for (const CommandRow& command : all) {
      CLI::App* to = app.add_subcommand(command.name, command.help);
      to->footer(std::string("\nExamples:\n") + command.examples);
      add_options(command, to);
    }
    app.parse(marked(words));
    if (given->execute != run) launch::let_writes_fail();
    need_others(*given, *app.get_subcommand(given->name));
    take_newest_run(*given, options);
    if (given->together) return run_together(*given, options);
    return executed(*given, options);
  } catch (const CLI::ParseError& e) {
    std::ostringstream help;
    std::ostringstream error;
    const int code = app.exit(e, help, error);
    show(help.str());
    text::say("{}", error.str());
    return ended(code == 0 ? kOk : kBadUsage);
  } catch (const std::exception& e) {
    return fail(e.what());
  }
}

}  // namespace tprof::cli
