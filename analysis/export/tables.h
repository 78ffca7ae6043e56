// The tables of `tprof export`, the same in SQLite and as CSV. README.md in this folder describes
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "read/error.h"

#include "text/kept.h"

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
  Value(std::int64_t v) : held_(v) {}
  Value(int v) : held_(std::int64_t{v}) {}
  // Beyond 63 bits it becomes a real number, since SQLite has no larger integers.
  Value(std::uint64_t v) {
    if (v > std::uint64_t{INT64_MAX}) {
      held_ = static_cast<double>(v);
    } else {
      held_ = static_cast<std::int64_t>(v);
    }
  }
  Value(double v) : held_(v) {}
  Value(std::string_view text) {
    if (!text.empty()) held_ = text;
  }
  Value(const std::string& text) : Value(std::string_view(text)) {}
  Value(const char* text) : Value(std::string_view(text)) {}
  Value(const text::Kept& text) : Value(std::string_view(text)) {}
  template <typename T>
  Value(const std::optional<T>& v) {
    if (v) *this = Value(*v);
  }
  // NOLINTEND(google-explicit-constructor)

  const Held& held() const { return held_; }

 private:
  Held held_;
};

class CantWrite : public read::BadInput {
 public:
  using BadInput::BadInput;
};

using Row = std::initializer_list<Value>;  // one value for each column

// Takes the rows. Throws CantWrite.
class TableWriter {
 public:
  virtual ~TableWriter() = default;
  virtual void row(TableName table, Row values) = 0;
  // take_back_part() removes all rows since the last begin_part().
  virtual void begin_part() = 0;
  virtual void take_back_part() = 0;
  virtual void finish() = 0;
};

}  // namespace tprof::trace_export
