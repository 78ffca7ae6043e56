// The formats of `tprof export`, each in its own file: they write the ranks of a job on one time
// axis, with their lines.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "export/output.h"
#include "export/placement.h"
#include "run/lines.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tprof::trace_export {

struct Exported {
  struct Rank {
    std::int64_t number = 0;  // `process` in the tables
    Placement at;
  };

  const job::Job& job;     // the whole job
  const run::Lines lines;  // chosen calls are marked
  const steps::Found& found;
  std::vector<const read::Process*> processes{};  // exported ones, by rank
  std::map<const read::Process*, Rank> ranks{};
  std::int64_t base_time_ns = 0;  // CLOCK_REALTIME at ts 0
  std::string clocks{};           // a sentence about the alignment of hosts; empty: one host
  const filter::Selection* asked = nullptr;  // null: all calls
  std::string only{};                        // its filters, and those of an earlier merge

  // Shows the lines of one rank to the visitor that make(rank) returns (run/lines.h).
  template <typename Make>
  void show(const read::Process& rank, const Make& make) const {
    job::Job alone;
    alone.processes = {&rank};
    lines.of(alone).each(make);
  }

  // NVTX ranges are no calls: only filters of ranks and steps apply to them.
  bool has_range(const read::Process& p, std::int64_t ts_ns) const {
    if (asked == nullptr) return true;
    const filter::Filter& f = asked->filter();
    return f.ops.empty() && f.sizes.empty() && f.comms.empty() && f.phases.empty() &&
           tables::in_steps(f.steps, found, p, ts_ns);
  }
};

// Removes processes whose files have an unreadable line, and names the files in `skipped`. Throws
// BadInput if none is left.
void leave_out_unreadable(const run::Lines& lines, std::vector<const read::Process*>& processes,
                          std::vector<read::Skipped>& skipped);

inline constexpr int kTablesVersion = 1;

enum class TableName { job, processes, threads, communicators, ledger, calls, ranges, steps };

struct TableInfo {
  struct Column {
    std::string name;
    std::string type;  // in SQLite
  };
  const char* name;
  std::vector<Column> columns;
  std::vector<const char*> indexes;  // columns of each index
};

// Returns the tables in the order of TableName.
const std::vector<TableInfo>& tables();
inline const TableInfo& info_of(TableName table) {
  return tables()[static_cast<std::size_t>(table)];
}

// The value of a column. Empty text counts as null, since nothing here has an empty name.
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

// The tables (README.md) as a SQLite database, or what is made of one: CSV files in a new folder,
// or a Parquet data set. Throws CantWrite.
class TableWriter {
 public:
  enum class Kind { sqlite, csv, parquet };
  TableWriter(const std::filesystem::path& name, Kind kind);

  void row(TableName table, Row values);  // the first one has to be that of the job
  void finish();

 private:
  struct Close {
    void operator()(sqlite3* db) const;
    void operator()(sqlite3_stmt* s) const;
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Close>;

  void make(const TableInfo& table);
  void write_csv(const TableInfo& table);
  Statement prepare(const std::string& sql);
  void run(const std::string& sql);
  [[noreturn]] void fail();

  const Kind kind_;
  NewOutput output_;
  std::unique_ptr<sqlite3, Close> db_;
  std::vector<Statement> inserts_;
};

// `progress` gets the number of processes done.
void write_tables(const Exported& of, TableWriter& to,
                  const std::function<void(std::size_t)>& progress);

// Another tool's format, with a file for each rank.
struct RankFormat {
  using Processes = std::vector<const read::Process*>;     // of a rank; usually one
  std::function<std::string(const Processes&)> file_name;  // compressed if it ends in .gz
  // Returns the number of calls timed on the device. A rank without any gets no file.
  std::function<std::uint64_t(const Processes&, Output&)> write;
};
RankFormat kineto_traces(const Exported& of);   // in the format of PyTorch's profiler
RankFormat inspector_logs(const Exported& of);  // in the format of NCCL's Inspector

}  // namespace tprof::trace_export
