// Writes manual pages in man(7) format: tprof(1) with the library's settings, and tprof-COMMAND(1).
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <cerrno>
#include <fstream>
#include <span>

#include "cli/option_table.h"
#include "interpose/format/schema.h"
#include "interpose/format/settings.h"
#include "read/error.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::cli {

namespace {

// Escapes what groff would treat as a request, an escape or a breakable hyphen.
std::string roff(std::string_view text) {
  const bool request = text.starts_with('.') || text.starts_with('\'');
  return (request ? "\\&" : "") +
         text::replaced(text, {{"\n.", "\n\\&."}, {"\n'", "\n\\&'"}, {"\\", "\\e"}, {"-", "\\-"}});
}

std::string head(std::string_view name, std::string_view about) {
  return fmt::format(".TH {} 1 \"\" \"tprof {}\" \"tprof\"\n.SH NAME\n{} \\- {}\n", name, kVersion,
                     roff(name), roff(about));
}

std::string synopsis_of(const CommandRow& row) {
  std::string out = fmt::format(".SH SYNOPSIS\n.B tprof {}\n[\\fIOPTION\\fR...]\n", row.name);
  for (const Option& option : row.options) {
    if (!option.is_argument()) continue;
    out += fmt::format("{}\\fI{}\\fR{}\n", option.required ? "" : "[", roff(option.names),
                       option.required ? "" : "]");
  }
  return out;
}

std::string options_of(const CommandRow& row) {
  std::string out = ".SH OPTIONS\n";
  for (const Option& option : row.options) {
    out += ".TP\n";
    std::string names;
    for (const std::string& name : option.list()) {
      names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
    }
    if (!option.value.empty()) names += fmt::format(" \\fI{}\\fR", roff(option.value));
    out += fmt::format("{}\n{}\n", names, roff(option.help));
  }
  return out + ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nprints this\n";
}

// Returns the command lines of a row's examples, or the text after them.
std::string examples_of(const CommandRow& row, bool commands) {
  std::string part;
  for (const std::string_view line : text::split(row.examples, '\n')) {
    if (line.starts_with("  ") == commands) (part += line) += '\n';
  }
  return part;
}

std::string part(std::string_view title, const std::string& text) {
  return text.empty() ? "" : fmt::format(".SH {}\n.nf\n{}.fi\n", title, roff(text));
}

std::string manual_of(const CommandRow& row) {
  return head(fmt::format("tprof-{}", row.name), row.help) + synopsis_of(row) +
         part("DESCRIPTION", examples_of(row, false)) + options_of(row) +
         part("EXAMPLES", examples_of(row, true)) + ".SH SEE ALSO\n.BR tprof (1)\n";
}

std::string manual_of_all(std::span<const CommandRow> commands) {
  std::string out = head("tprof", "counts and times the communication of a training job");
  out += ".SH SYNOPSIS\n.B tprof\n\\fICOMMAND\\fR [\\fIOPTION\\fR...] [\\fIPATH\\fR...]\n";
  out +=
      ".SH DESCRIPTION\n.B libtprof.so\ngoes before any training command by LD_PRELOAD. It counts "
      "every NCCL collective and every CUDA copy, and writes a trace for each rank.\n.B tprof\n"
      "runs the command with it, merges the ranks and says where the communication went.\n";
  out += ".SH COMMANDS\n";
  for (const CommandRow& row : commands) {
    out += fmt::format(".TP\n.BR tprof\\-{} (1)\n{}\n", row.name, roff(row.help));
  }
  out += ".SH ENVIRONMENT\nThe library reads these when the first call is recorded.\n";
  for (const SettingInfo& s : kSettings) {
    out += fmt::format(".TP\n\\fB{}\\fR (default {})\n{}. Values: {}.\n", s.name, roff(s.fallback),
                       roff(s.meaning), roff(s.values));
  }
  return out +
         ".SH EXIT STATUS\n0: nothing is wrong. 1: a warning or an error was found. 2: wrong "
         "usage, or input that can't be read.\n.B tprof run\nexits as its command did.\n";
}

// Completions for bash, zsh and fish, from the option table.

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
  // _arguments interprets brackets and colons.
  const auto plain = [](std::string_view help) {
    return text::in_quotes(text::replaced(help, {{"[", "\\["}, {"]", "\\]"}, {":", "\\:"}}));
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
                       text::in_quotes(row.help));
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
      out += fmt::format(" -d '{}'\n", text::in_quotes(option.help));
    }
  }
  return out;
}

}  // namespace

int manual(const Options& o) {
  Options any;
  const std::vector<CommandRow> rows = commands(any);
  const auto write = [&](const std::string& name, const std::string& page) {
    const fs::path file = o.folder / (name + ".1");
    std::ofstream out(file, std::ios::binary);
    out << page;
    out.close();
    if (!out) throw read::not_written(file, errno);
  };
  fs::create_directories(o.folder);
  write("tprof", manual_of_all(rows));
  for (const CommandRow& row : rows) write(fmt::format("tprof-{}", row.name), manual_of(row));
  return kOk;
}

int completion(const Options& o) {
  Options any;
  const std::vector<CommandRow> rows = commands(any);
  text::put(o.command == "bash"  ? bash_completion(rows)
            : o.command == "zsh" ? zsh_completion(rows)
                                 : fish_completion(rows));
  return kOk;
}

}  // namespace tprof::cli
