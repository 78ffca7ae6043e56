// The tables of `tprof export`, the same in SQLite and as CSV. README.md in this folder describes
// them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "read/error.h"

namespace tprof::trace_export {

inline constexpr int kTablesVersion = 1;

enum class TableName { job, processes, threads, communicators, ledger, calls, ranges, steps };

struct TableInfo {
  struct Column {
    std::string name;
    std::string type;  // in SQLite
  };
  const char* name;
  std::vector<Column> columns;
  std::vector<const char*> indexes;  // columns of each
};

// Returns the tables in the order of TableName.
const std::vector<TableInfo>& tables();
inline const TableInfo& info_of(TableName table) {
  return tables()[static_cast<std::size_t>(table)];
}

// The value of one column of a row. Empty text counts as none, since nothing here has an empty
// name.
class Value {
 public:
  using Held = std::variant<std::monostate, std::int64_t, double, std::string_view>;

  Value() = default;
  // NOLINTBEGIN(google-explicit-constructor)
  // Beyond 63 bits it becomes a real number, since SQLite has no larger integers.
  template <std::integral T>
  Value(T v) {
    if (std::is_unsigned_v<T> && static_cast<std::uint64_t>(v) > std::uint64_t{INT64_MAX}) {
      held_ = static_cast<double>(v);
    } else {
      held_ = static_cast<std::int64_t>(v);
    }
  }
  Value(double v) : held_(v) {}
  template <std::convertible_to<std::string_view> T>
  Value(const T& text) {
    if (const std::string_view all(text); !all.empty()) held_ = all;
  }
  template <typename T>
  Value(const std::optional<T>& v) {
    if (v) *this = Value(*v);
  }
  // NOLINTEND(google-explicit-constructor)

  const Held& held() const { return held_; }

 private:
  Held held_;
};

using Row = std::initializer_list<Value>;  // one value for each column

// Takes the rows. Throws CantWrite.
class TableWriter {
 public:
  virtual ~TableWriter() = default;
  virtual void row(TableName table, Row values) = 0;
  virtual void finish() = 0;
};

}  // namespace tprof::trace_export
