// A part of a report: a table, and the sentences above and below it. Text and JSON draw the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/table.h"

namespace tprof::report {

struct Section {
  std::string title{};  // empty: people read on in the section before
  std::string lead{};
  Sheet table{};  // without columns: people see no table
  std::vector<Legend> legend{};
  std::string notes{};
  // A JSON pointer below the report's key for the view. Absent: programs don't get the table.
  std::optional<std::string> at{};
  Shape shape = Shape::rows;
  Json facts{};  // for programs: what stands beside the table
  Room room{};
};

std::string to_text(Section section);
void put(Json& to, const char* key, Section section);

}  // namespace tprof::report
