// Parses the command line, and runs the command that it asks for.
#include <fcntl.h>
#include <fmt/format.h>
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
#include "cli/manual.h"
#include "cli/option_table.h"
#include "cli/screen.h"
#include "interpose/format/misspelt.h"
#include "interpose/format/schema.h"
#include "launch/command.h"
#include "read/error.h"
#include "team/mpi.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::cli {
namespace {

// Keeps files of ours from getting the number of standard input, output or error if that was closed
// before we were started: our messages would go into them. A closed one can't be read or written
// afterwards either, and a child gets it closed.
void hold_standard_files() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) != -1) continue;
    const int held = open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    if (held > STDERR_FILENO) close(held);
  }
}

void add(const CommandRow& command, CLI::App& app) {
  CLI::App* to = app.add_subcommand(command.name, command.help);
  to->footer(command.examples);
  for (const Option& option : command.options) {
    CLI::Option* added = std::visit(
        [&](auto* target) {
          if constexpr (std::is_same_v<decltype(target), bool*>) {
            return to->add_flag(option.name, *target, option.help);
          } else {
            return to->add_option(option.name, *target, option.help);
          }
        },
        option.to);
    if (option.value != nullptr) added->option_text(option.value);
    added->required(option.required);
    if (option.restrict_it != nullptr) option.restrict_it(added);
    // Either a command with options of its own, or an option that may be repeated, with a value
    // each.
    if (!std::holds_alternative<std::vector<std::string>*>(option.to)) continue;
    if (option.name[0] == '-') added->allow_extra_args(false);
    if (std::string_view(option.name) == "CMD") to->positionals_at_end();
  }
}

constexpr std::string_view kOwnOptions[] = {"--help", "-h", "--version", "-V"};

// Throws if the first word is neither a command nor an option of tprof's own.
void know_command(std::span<const CommandRow> commands, const std::vector<std::string>& words) {
  if (words.empty()) {
    throw read::BadInput(
        "expected a command, such as tprof run -- CMD, or tprof report DIR (tprof --help lists "
        "them)");
  }
  const std::string& word = words[0];
  const bool option = word.starts_with('-');
  if (option ? std::ranges::count(kOwnOptions, word) != 0
             : std::ranges::any_of(commands, [&](const auto& c) { return c.name == word; })) {
    return;
  }
  const std::string_view near =
      option ? nearest(word, kOwnOptions, 2) : nearest(word, commands, 0, &CommandRow::name);
  throw read::BadInput(fmt::format("expected a command, found '{}'{} (tprof --help lists them)",
                                   word,
                                   near.empty() ? "" : fmt::format(": did you mean {}?", near)));
}

// The words of the command line, with help and version, which other tools have as commands, as the
// options that they are here: "help merge" as "merge --help".
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words == std::vector<std::string>{"version"}) words = {"--version"};
  if (!words.empty() && words.size() <= 2 && words[0] == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  return words;
}

// "did you mean --verbose?", for the first option that the command does not have; empty if none is
// near.
std::string meant_option(std::span<const CommandRow> commands,
                         const std::vector<std::string>& words) {
  const auto command = std::ranges::find_if(
      commands, [&](const CommandRow& c) { return !words.empty() && c.name == words[0]; });
  if (command == commands.end()) return "";
  std::vector<std::string> names = {"--help"};
  for (const Option& option : command->options) {
    for (std::string& name : names_of(option)) names.push_back(std::move(name));
  }
  for (std::size_t i = 1; i < words.size() && words[i] != "--"; ++i) {
    const std::string_view word = std::string_view(words[i]).substr(0, words[i].find('='));
    if (!word.starts_with("--") || std::ranges::find(names, word) != names.end()) continue;
    const std::string_view near = nearest(word, names, 2);
    return near.empty() ? "" : fmt::format(": did you mean {}?", near);
  }
  return "";
}

// The newest run is taken where neither a PATH nor a DIR was given to a command that does without.
void take_newest_run(const CommandRow& command, Options& o) {
  for (const Option& option : command.options) {
    if (option.required) continue;
    const auto* paths = std::get_if<std::vector<fs::path>*>(&option.to);
    if (paths != nullptr && *paths == &o.paths && o.paths.empty()) o.paths = {newest_run()};
    const auto* folder = std::get_if<fs::path*>(&option.to);
    if (folder != nullptr && *folder == &o.folder && o.folder.empty()) o.folder = newest_run();
  }
}

// CLI11 takes a word in brackets for a list of words, but here it is one, such as of the command of
// `tprof run`. So a mark stands before it while CLI11 looks at it.
constexpr char kMark = '\x01';

std::vector<std::string> marked(std::vector<std::string> words) {
  for (std::string& word : words) {
    if (word.starts_with('[')) word.insert(word.begin(), kMark);
  }
  std::ranges::reverse(words);  // as CLI11 wants them
  return words;
}

void take_marks(std::span<const CommandRow> commands) {
  const auto take = [](auto& text) {
    const std::string whole(text);
    if (whole.starts_with(kMark)) text = whole.substr(1);
  };
  for (const CommandRow& command : commands) {
    for (const Option& option : command.options) {
      std::visit(
          [&](auto* target) {
            using T = std::remove_pointer_t<decltype(target)>;
            if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, fs::path>) {
              take(*target);
            } else if constexpr (std::is_same_v<T, std::vector<std::string>> ||
                                 std::is_same_v<T, std::vector<fs::path>>) {
              for (auto& one : *target) take(one);
            }
          },
          option.to);
    }
  }
}

struct Outcome {
  int code = kBadUsage;
  std::string error{};  // empty: none
};

// The code of a command that ended so, if all that it printed was written.
Outcome ended(int code) {
  const int error = text::unwritten();
  if (error == 0) return {code};
  return {.error = fmt::format("standard output: {}", std::strerror(error))};
}

Outcome run(const CommandRow& command, const Options& options) {
  try {
    return ended(command.execute(options));
  } catch (const fs::filesystem_error& e) {
    return {.error = fmt::format("{}: {}", e.path1().string(), e.code().message())};
  } catch (const std::exception& e) {
    return {.error = e.what()};
  }
}

int say(const Outcome& outcome) {
  text::unwritten();
  if (!outcome.error.empty()) text::say("tprof: {}\n", text::printable(outcome.error));
  return outcome.code;
}

void be_silent() {
  const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, fd);
}

// Runs it in one of the processes that MPI started for it: the first one says what there is to say.
int run_together(const CommandRow& command, Options& options) {
  try {
    options.team = team::of_mpi();
  } catch (const std::exception& e) {
    const bool first = team::told_rank() == 0;
    if (first) say({.error = e.what()});
    // A launcher ends all processes once one has failed: leaves the first the time to say why.
    if (!first) sleep(1);
    return kBadUsage;
  }
  if (options.team && options.team->rank() != 0) be_silent();
  Outcome outcome = run(command, options);
  if (options.team) {
    const auto [code, error] = options.team->end(outcome.code, outcome.error);
    outcome.code = code;
    if (outcome.error.empty()) outcome.error = error;
  }
  say(outcome);
  options.team.reset();  // from here on the launcher may end this process
  return outcome.code;
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
  app.failure_message([&](const CLI::App*, const CLI::Error& e) {
    const bool misspelt = dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr ||
                          dynamic_cast<const CLI::RequiredError*>(&e) != nullptr;
    return fmt::format("tprof: {}{} ({} --help tells more)\n", text::printable(e.what()),
                       misspelt ? meant_option(all, words) : "",
                       words.empty() ? "tprof" : "tprof " + words[0]);
  });
  for (const CommandRow& command : all) add(command, app);
  try {
    hold_standard_files();
    know_command(all, words);
    app.parse(marked(words));
    take_marks(all);
    if (!app.got_subcommand("run")) launch::let_writes_fail();
    const auto given = std::ranges::find_if(
        all, [&](const CommandRow& command) { return app.got_subcommand(command.name); });
    take_newest_run(*given, options);
    if (given->together) return run_together(*given, options);
    return say(run(*given, options));
  } catch (const CLI::ParseError& e) {
    std::ostringstream help;
    std::ostringstream error;
    const int code = app.exit(e, help, error);
    show(help.str());
    text::say("{}", error.str());
    return say(ended(code == 0 ? kOk : kBadUsage));
  } catch (const std::exception& e) {
    return say({.error = e.what()});
  }
}

}  // namespace tprof::cli
