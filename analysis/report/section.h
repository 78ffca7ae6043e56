// A part of a report: a table, and the sentences above and below it. Text, JSON and the page draw
// the same.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/table.h"

namespace tprof::report {

using Notes = std::vector<std::string>;  // sentences

struct Section {
  std::string title{};  // empty: people read on in the section before
  Notes lead{};
  Sheet table{};  // without columns: people see no table
  Notes notes{};
  // A JSON pointer below the report's key for the view. Absent: programs don't get the table.
  std::optional<std::string> at{};
  Shape shape = Shape::rows;
  Json facts{};  // for programs: what stands beside the table
  Room room{};
};

void append(Notes& to, const Notes& more);
Notes notes_if(std::initializer_list<std::pair<bool, std::string>> all);  // those that are true
std::string to_text(Section section);
void put(Json& to, const char* key, Section section);

}  // namespace tprof::report
