#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/environment.h"
#include "doctor/functions.h"
#include "doctor/machine.h"

namespace tprof::cli {

int coverage(const CoverageOptions& o) {
  const fs::path file = find_library();
  const doctor::Library library = doctor::describe_library(file);
  const doctor::FunctionList list =
      doctor::parse_functions(file.string(), library.elf.function_list);
  fmt::print("{}", o.json ? doctor::to_json(list) : doctor::to_text(list));
  return kOk;
}

}  // namespace tprof::cli
