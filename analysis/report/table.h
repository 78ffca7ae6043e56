// Tables of values with the sentences around them. One list of columns becomes text for people and
// JSON for programs.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "check/names.h"
#include "text/text.h"

namespace tprof::report {

// JSON with keys in insertion order.

using Json = nlohmann::ordered_json;

// Null for absent values and empty text.
inline Json or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}
template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

// Prints JSON. `indent`: -1: on one line.
inline std::string printed(const Json& json, int indent = 1) {
  return json.dump(indent, ' ', true, Json::error_handler_t::replace) + "\n";
}

// How people see a cell. Programs get the plain number in base units. `_not_0`: "-" for 0.
enum class Unit {
  text,
  right_text,
  name,  // text, blank for people if unknown or empty
  number,
  count,
  count_not_0,
  bytes,
  bytes_not_0,
  ns,
  ns_not_0,
  rate,        // with two decimals
  share,       // a fraction, as a percentage
  size_class,  // [2^n, 2^(n+1)) bytes
  utc,         // CLOCK_REALTIME in nanoseconds
  exposed,     // part of a time
};

enum class Show {
  always,
  if_any,      // hidden in text if all rows are empty
  label,       // blank if all labels equal those of the row above
  if_room,     // as if_any; dropped if the table is too wide, the rightmost first
  last_to_go,  // as if_room, but dropped last
};

enum class For { people, programs };

// How programs get the rows.
enum class Shape {
  rows,     // an array of objects
  members,  // an object of objects, keyed by the first column
  columns,  // an object of arrays, keyed by column
  row,      // the only row as an object; null if there is none
};

struct Unknown {};  // "-" for people, null for programs
struct Part {       // programs get nanoseconds, people also the share
  std::uint64_t ns = 0;
  std::uint64_t of_ns = 0;  // 0: shows "-"
};

// A cell: text, number, flag, or any of these that may be absent. A process shows as its rank, or
// another name for people if it has none. Lists of numbers are ranges for people.
struct Value {
  std::variant<Unknown, std::int64_t, std::uint64_t, double, std::string, Part,
               const read::Process*, std::vector<std::int64_t>, Json>
      is{};

  Value() = default;
  template <typename T>
  requires(!std::same_as<std::remove_cvref_t<T>, Value>)
      Value(T&& v) {  // NOLINT(google-explicit-constructor): columns name members of rows
    set(std::forward<T>(v));
  }

 private:
  template <typename T>
  void set(T&& v) {
    using Plain = std::remove_cvref_t<T>;
    if constexpr (std::same_as<Plain, Json>) {
      is = std::forward<T>(v);
    } else if constexpr (requires { v.has_value(); }) {
      if (v) set(*std::forward<T>(v));
    } else if constexpr (std::same_as<Plain, bool>) {
      is = Json(v);
    } else if constexpr (std::signed_integral<Plain>) {
      is = std::int64_t{v};
    } else if constexpr (std::unsigned_integral<Plain>) {
      is = std::uint64_t{v};
    } else if constexpr (std::same_as<Plain, std::set<std::int64_t>>) {
      is = std::vector<std::int64_t>(v.begin(), v.end());
    } else if constexpr (std::same_as<Plain, text::Ranks>) {
      is = v.str();
    } else if constexpr (std::is_convertible_v<T, std::string_view>) {
      is = std::string(std::string_view(v));
    } else {
      is = std::forward<T>(v);
    }
  }
};

struct Head {
  const char* title;
  const char* key;
  Unit unit;
  Show show = Show::always;
};

template <typename Row>
struct Column {
  const char* title;  // null: only in JSON
  const char* key;    // in JSON; null: only in text
  Unit unit;
  std::function<Value(const Row&)> of;
  Show show = Show::always;
};

// The cells of all rows, with the columns for people or for programs only, as JSON columns may be
// large.
struct Sheet {
  std::vector<Head> heads;
  std::vector<std::vector<Value>> rows{};
};

template <typename Row>
Sheet sheet(const std::vector<Column<Row>>& columns, const std::vector<Row>& rows, For who) {
  const auto name = who == For::people ? &Column<Row>::title : &Column<Row>::key;
  Sheet all;
  for (const Column<Row>& c : columns) {
    if (c.*name != nullptr) all.heads.push_back({c.title, c.key, c.unit, c.show});
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
  std::size_t width = SIZE_MAX;  // characters per line
  bool breaks = false;           // long text continues on the next line
  std::size_t rows = SIZE_MAX;
  const char* names = "";           // what the rows are, such as " names"
  const char* all_with = "--json";  // the option that shows all rows
  bool tells_columns = false;       // names dropped columns
};

std::string ratio(std::uint64_t part, std::uint64_t all);  // "12.3%"
std::string cut(const std::string& text,
                std::size_t most);  // printable, shortened with "..."

// Takes the sheet by value to free each row once it is drawn: a table may have 100,000 rows.
std::string to_text(Sheet sheet, const Room& room = {});
// Returns [title, key, unit] for each column.
Json heads_json(const Sheet& sheet);
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

// Empty text means unknown.
inline Value or_unknown(const std::string& text) {
  return text.empty() ? Value() : Value(text);
}

using Notes = std::vector<std::string>;  // sentences

struct Section {
  std::string title{};  // empty: continues the previous section
  Notes lead{};
  Sheet table{};  // no table without columns
  Notes notes{};
  // A JSON pointer below the view's key. Absent: programs don't get the table.
  std::optional<std::string> at{};
  Shape shape = Shape::rows;
  Json facts{};  // for programs: values besides the table
  Room room{};
};

void append(Notes& to, const Notes& more);
Notes notes_if(std::initializer_list<std::pair<bool, std::string>> all);  // the true ones
std::string to_text(Section section);
void put(Json& to, const char* key, Section section);

}  // namespace tprof::report
