// The commands that tell of the option table: `tprof completion` and `tprof manual`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "cli/manual.h"
#include "read/error.h"
#include "text/print.h"

namespace tprof::cli {
namespace {

int completion(const Options& o) {
  Options any;
  const std::vector<CommandRow> rows = commands(any);
  const auto script = o.command == "bash"  ? bash_completion(rows)
                      : o.command == "zsh" ? zsh_completion(rows)
                                           : fish_completion(rows);
  text::put(script);
  return kOk;
}

int manual(const Options& o) {
  Options any;
  const std::vector<CommandRow> rows = commands(any);
  const auto write = [&](const std::string& name, const std::string& page) {
    const fs::path file = o.folder / (name + ".1");
    std::ofstream out(file, std::ios::binary);
    out << page;
    out.close();
    if (!out) throw read::BadInput(file, std::string("can't be written: ") + std::strerror(errno));
  };
  fs::create_directories(o.folder);
  write("tprof", manual_of_all(rows));
  for (const CommandRow& row : rows) write(fmt::format("tprof-{}", row.name), manual_of(row));
  return kOk;
}

}  // namespace

std::vector<CommandRow> rows_about_the_table(Options& o) {
  return {{"completion",
           "Prints a script that completes tprof's commands and options",
           R"(
Examples:
  source <(tprof completion bash)
  tprof completion zsh > ~/.zfunc/_tprof
  tprof completion fish | source)",
           completion,
           {{"SHELL", &o.command, "bash, zsh or fish", "bash|zsh|fish", true,
             [](CLI::Option* option) {
               option->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""));
             }}}},
          {"manual",
           "Writes the manual pages",
           R"(
Examples:
  tprof manual ~/.local/share/man/man1
  man tprof-summary)",
           manual,
           {{"DIR", &o.folder, "folder for them, made if missing", nullptr, true}}}};
}

}  // namespace tprof::cli
