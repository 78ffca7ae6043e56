#include "cli/manual.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "interpose/format/schema.h"
#include "interpose/format/settings.h"

namespace tprof::cli {
namespace {

// Escapes what groff would take for a request, an escape or a hyphen that may be broken at.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool begins = out.empty() || out.back() == '\n';
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string head(std::string_view name, std::string_view about) {
  return fmt::format(".TH {} 1 \"\" \"tprof {}\" \"tprof\"\n.SH NAME\n{} \\- {}\n", name, kVersion,
                     roff(name), roff(about));
}

bool is_argument(const Option& option) {
  return option.name[0] != '-';
}

std::string synopsis_of(const CommandRow& row) {
  std::string out = fmt::format(".SH SYNOPSIS\n.B tprof {}\n[\\fIOPTION\\fR...]\n", row.name);
  for (const Option& option : row.options) {
    if (!is_argument(option)) continue;
    out += fmt::format("{}\\fI{}\\fR{}\n", option.required ? "" : "[", roff(option.name),
                       option.required ? "" : "]");
  }
  return out;
}

std::string options_of(const CommandRow& row) {
  std::string out = ".SH OPTIONS\n";
  for (const Option& option : row.options) {
    out += ".TP\n";
    std::string names;
    for (const std::string& name : names_of(option)) {
      names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
    }
    if (option.value != nullptr) names += fmt::format(" \\fI{}\\fR", roff(option.value));
    out += fmt::format("{}\n{}\n", names, roff(option.help));
  }
  return out + ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nsays all this\n";
}

}  // namespace

Examples examples_of(const CommandRow& row) {
  Examples parts;
  std::istringstream lines(row.examples);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line == "Examples:") continue;
    std::string& part = line.starts_with("  ") ? parts.commands : parts.notes;
    part += fmt::format("{}\n", line);
  }
  return parts;
}

std::vector<std::string> names_of(const Option& option) {
  return CLI::detail::split(option.name, ',');
}

std::vector<std::string> choices_of(const Option& option) {
  const std::string value = option.value == nullptr ? "" : option.value;
  if (value.find('|') == std::string::npos) return {};
  return CLI::detail::split(value, '|');
}

std::string manual_of(const CommandRow& row) {
  const std::string name = fmt::format("tprof-{}", row.name);
  const Examples examples = examples_of(row);
  std::string out = head(name, row.help) + synopsis_of(row);
  if (!examples.notes.empty()) {
    out += fmt::format(".SH DESCRIPTION\n.nf\n{}.fi\n", roff(examples.notes));
  }
  out += options_of(row);
  if (!examples.commands.empty()) {
    out += fmt::format(".SH EXAMPLES\n.nf\n{}.fi\n", roff(examples.commands));
  }
  return out + ".SH SEE ALSO\n.BR tprof (1)\n";
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

}  // namespace tprof::cli
