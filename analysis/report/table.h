// A table whose cells are values: one list of columns is drawn as text for people and as JSON for
// programs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "report/json.h"

namespace tprof::report {

// The unit says how people see a cell. Programs get the plain number, in base units. `_not_0` shows
// "-" for 0.
enum class Unit {
  text,
  right_text,
  name,  // text that is blank for people where it is not known
  number,
  count,
  count_not_0,
  bytes,
  bytes_not_0,
  ns,
  ns_not_0,
  rate,  // with two decimals
  share,
};

enum class Show {
  always,
  if_any,      // no row says anything: the text has no such column
  label,       // blank where all labels are those of the row above
  if_room,     // as if_any, and left out where the table is too wide, the rightmost first
  last_to_go,  // as if_room, where the table is still wider without all of these
  // In place of the column on its right where there is no room for that on its left: it has of that
  // what tells rows apart.
  stand_in,
};

enum class For { people, programs };

// The form in which programs get the rows.
enum class Shape {
  rows,     // an array of objects
  members,  // an object of objects, each named by its first column
  columns,  // an object of arrays, each named by its column
  row,      // the object of the only row; null if there is none
};

struct Unknown {};  // "-" for people, null for programs
struct Share {
  std::int64_t part = 0;
  std::int64_t whole = 0;
};
struct Measure {  // in a unit of its own, where a column has several
  std::uint64_t n = 0;
  Unit unit = Unit::number;
};
using Value =
    std::variant<Unknown, std::int64_t, std::uint64_t, double, std::string, Share, Measure, Json>;

struct Head {
  const char* name;  // the title or the key
  Unit unit;
  Show show;
};

template <typename Row>
struct Column {
  const char* title;  // null: only in JSON
  const char* key;    // in JSON; null: only in text
  Unit unit;
  std::function<Value(const Row&)> of;
  Show show = Show::always;
};

// The value of each column for each row. It has the columns that one of the two sees: JSON of a
// column that only programs get may be large.
struct Sheet {
  std::vector<Head> heads;
  std::vector<std::vector<Value>> rows;
};

template <typename Row>
Sheet sheet(const std::vector<Column<Row>>& columns, const std::vector<Row>& rows, For who) {
  const auto name = who == For::people ? &Column<Row>::title : &Column<Row>::key;
  Sheet all;
  for (const Column<Row>& c : columns) {
    if (c.*name != nullptr) all.heads.push_back({c.*name, c.unit, c.show});
  }
  for (const Row& row : rows) {
    std::vector<Value>& values = all.rows.emplace_back();
    values.reserve(all.heads.size());
    for (const Column<Row>& c : columns) {
      if (c.*name != nullptr) values.push_back(c.of(row));
    }
  }
  return all;
}

// How much of a table people see.
struct Room {
  std::size_t width = SIZE_MAX;  // of a line, in characters
  bool breaks = false;           // text that makes lines longer goes on in the next one
  std::size_t rows = SIZE_MAX;
  const char* names = "";           // what rows are, such as " names"
  const char* all_with = "--json";  // the option that shows all rows
  bool tells_columns = false;       // names those for which there is no room
};

// Says what a column means, where it is shown; without a column: always.
struct Legend {
  const char* column;
  const char* text;
};

// Takes the sheet by value to give back each row's memory once it is drawn: a table may have
// 100,000 rows.
std::string to_text(Sheet sheet, const Room& room = {}, const std::vector<Legend>& legend = {});
Json to_json(Sheet sheet, Shape shape = Shape::rows);

template <typename Row>
std::string table_text(const std::vector<Column<Row>>& columns, const std::vector<Row>& rows,
                       const Room& room = {}) {
  return to_text(sheet(columns, rows, For::people), room);
}

template <typename Row>
Json table_json(const std::vector<Column<Row>>& columns, const std::vector<Row>& rows) {
  return to_json(sheet(columns, rows, For::programs));
}

// One row's object.
template <typename Row>
Json row_json(const std::vector<Column<Row>>& columns, const Row& row) {
  return table_json(columns, std::vector<Row>{row}).front();
}

template <typename Row>
void append(std::vector<Column<Row>>& to, const std::vector<Column<Row>>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

template <typename T>
Value or_unknown(const std::optional<T>& value) {
  return value ? Value(*value) : Value();
}

// Empty text means that the field is not known.
inline Value or_unknown(const std::string& text) {
  return text.empty() ? Value() : Value(text);
}

}  // namespace tprof::report
