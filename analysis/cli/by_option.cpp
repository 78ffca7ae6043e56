#include "cli/by_option.h"

#include <fmt/format.h>

#include "report/by.h"

namespace tprof::cli {

std::string names_of_by() {
  std::string all;
  for (const report::ByRow& row : report::by_rows()) {
    all += fmt::format("{}{}", all.empty() ? "" : "|", row.name);
  }
  return all;
}

std::string about_by() {
  std::string all;
  for (const report::ByRow& row : report::by_rows()) {
    if (*row.about == '\0') continue;
    all += fmt::format("{}{}: {}", all.empty() ? "" : "; ", row.name, row.about);
  }
  return all;
}

std::string to_by(std::string& name) {
  for (const report::ByRow& row : report::by_rows()) {
    if (name != row.name) continue;
    name = std::to_string(static_cast<int>(row.by));
    return "";
  }
  return fmt::format("expected one of {}; found {}", names_of_by(), name);
}

}  // namespace tprof::cli
