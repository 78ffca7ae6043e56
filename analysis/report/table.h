// A table whose cells are values: one list of columns is drawn as text for people and as JSON for
// programs.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "report/cells.h"
#include "report/json.h"

namespace tprof::report {

// How people see a cell. Programs get the plain number, in base units.
enum class Unit { text, number, count, ns, ns_not_0, share };

struct Unknown {};  // "-" for people, null for programs
struct Share {
  std::int64_t part = 0;
  std::int64_t whole = 0;
};
using Value = std::variant<Unknown, std::int64_t, std::uint64_t, std::string, Share>;

template <typename Row>
struct Column {
  const char* title;  // null: only in JSON
  const char* key;    // in JSON; null: only in text
  Unit unit;
  std::function<Value(const Row&)> of;
};

std::string text_of(const Value& value, Unit unit);
Json json_of(const Value& value);

// Draws the first `most` rows.
template <typename Row>
std::string table_text(const std::vector<Column<Row>>& columns, const std::vector<Row>& rows,
                       std::size_t most = SIZE_MAX) {
  Columns titles;
  for (const Column<Row>& c : columns) {
    if (c.title == nullptr) continue;
    const bool left = c.unit == Unit::text;
    titles.emplace_back(c.title, left ? text::Table::Align::left : text::Table::Align::right);
  }
  text::Table table(titles);
  for (std::size_t i = 0; i < std::min(rows.size(), most); ++i) {
    std::vector<std::string> cells;
    for (const Column<Row>& c : columns) {
      if (c.title != nullptr) cells.push_back(text_of(c.of(rows[i]), c.unit));
    }
    table.row(std::move(cells));
  }
  std::string out = table.str();
  if (rows.size() > most) {
    out += fmt::format("  and {} more (all of them: --json)\n", rows.size() - most);
  }
  return out;
}

template <typename Row>
Json table_json(const std::vector<Column<Row>>& columns, const std::vector<Row>& rows) {
  Json all = Json::array();
  for (const Row& row : rows) {
    Json& j = all.emplace_back(Json::object());
    for (const Column<Row>& c : columns) {
      if (c.key != nullptr) j[c.key] = json_of(c.of(row));
    }
  }
  return all;
}

}  // namespace tprof::report
