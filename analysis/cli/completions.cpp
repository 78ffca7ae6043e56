// Completions for bash, zsh and fish, from the option table.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

#include "cli/option_table.h"
#include "text/print.h"

namespace tprof::cli {
namespace {

// Within single quotes of a shell.
std::string in_quotes(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out;
}

std::string bash_completion(std::span<const CommandRow> commands) {
  std::string names;
  std::string values;
  std::string options;
  for (const CommandRow& row : commands) {
    names += fmt::format("{} ", row.name);
    options += fmt::format("    {}) words='", row.name);
    for (const Option& option : row.options) {
      if (option.is_argument()) continue;
      for (const std::string& name : option.list()) {
        options += name + " ";
        if (option.words().empty()) continue;
        values += fmt::format("    {}:{}) words='{}' ;;\n", row.name, name,
                              fmt::join(option.words(), " "));
      }
    }
    options += "--help' ;;\n";
  }
  return fmt::format(R"(# Completes tprof in bash: source <(tprof completion bash)
_tprof() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} words='' n
  COMPREPLY=()
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W '{names}--help --version' -- "$cur"))
    return
  fi
  # Behind -- stands a command of its own.
  for ((n = 2; n < COMP_CWORD; n++)); do
    [ "${{COMP_WORDS[n]}}" = -- ] || continue
    [ $((n + 1)) = "$COMP_CWORD" ] && COMPREPLY=($(compgen -c -- "$cur"))
    return
  done
  case ${{COMP_WORDS[1]}}:$before in
{values}  esac
  if [ -z "$words" ] && [[ $cur == -* ]]; then
    case ${{COMP_WORDS[1]}} in
{options}    esac
  fi
  [ -z "$words" ] || COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _tprof tprof
)",
                     fmt::arg("names", names), fmt::arg("values", values),
                     fmt::arg("options", options));
}

std::string zsh_completion(std::span<const CommandRow> commands) {
  std::string names;
  std::string cases;
  // _arguments takes brackets and colons for its own.
  const auto plain = [](std::string_view help) {
    std::string out;
    for (const char c : help) {
      if (c == '[' || c == ']' || c == ':') out += '\\';
      out += c;
    }
    return in_quotes(out);
  };
  for (const CommandRow& row : commands) {
    names += fmt::format("    '{}:{}'\n", row.name, plain(row.help));
    cases += fmt::format("    {}) _arguments", row.name);
    for (const Option& option : row.options) {
      if (option.is_argument()) continue;
      const std::string value = option.is_flag() ? ""
                                : option.words().empty()
                                    ? fmt::format(":{}:_files", plain(option.value))
                                    : fmt::format(":value:({})", fmt::join(option.words(), " "));
      for (const std::string& name : option.list()) {
        cases += fmt::format(" \\\n      '{}[{}]{}'", name, plain(option.help), value);
      }
    }
    cases += row.name == std::string_view("run") ? " \\\n      '*::command:_normal' ;;\n"
                                                 : " \\\n      '*:file:_files' ;;\n";
  }
  return fmt::format(R"(#compdef tprof
# Completes tprof in zsh: tprof completion zsh > a folder of $fpath/_tprof
local -a commands
commands=(
{names})
if (( CURRENT == 2 )); then
  _describe command commands
else
  shift words
  (( CURRENT-- ))
  case $words[1] in
{cases}  esac
fi
)",
                     fmt::arg("names", names), fmt::arg("cases", cases));
}

std::string fish_completion(std::span<const CommandRow> commands) {
  std::string out = "# Completes tprof in fish: tprof completion fish | source\n";
  for (const CommandRow& row : commands) {
    out += fmt::format("complete -c tprof -n __fish_use_subcommand -f -a {} -d '{}'\n", row.name,
                       in_quotes(row.help));
    for (const Option& option : row.options) {
      if (option.is_argument()) continue;
      out += fmt::format("complete -c tprof -n '__fish_seen_subcommand_from {}'", row.name);
      for (const std::string& name : option.list()) {
        out += name.starts_with("--") ? fmt::format(" -l {}", name.substr(2))
                                      : fmt::format(" -s {}", name.substr(1));
      }
      if (!option.words().empty()) {
        out += fmt::format(" -x -a '{}'", fmt::join(option.words(), " "));
      } else if (!option.is_flag()) {
        out += " -r";
      }
      out += fmt::format(" -d '{}'\n", in_quotes(option.help));
    }
  }
  return out;
}

}  // namespace

int completion(const Options& o) {
  Options any;
  const std::vector<CommandRow> rows = commands(any);
  text::put(o.command == "bash"  ? bash_completion(rows)
            : o.command == "zsh" ? zsh_completion(rows)
                                 : fish_completion(rows));
  return kOk;
}

}  // namespace tprof::cli
