// The formats of `tprof export`. Each is one file beside this one, and a line here: they write the
// ranks of a job on one axis of time, and their lines.
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
#include "run/timed_calls.h"

namespace tprof::trace_export {

struct Exported {
  struct Rank {
    std::int64_t number = 0;  // `process` in the tables
    Placement at;
  };

  const job::Job& job;     // the whole of it
  const run::Lines lines;  // calls that were asked for are marked
  const steps::Found& found;
  std::vector<const read::Process*> processes{};  // that are exported, by rank
  std::map<const read::Process*, Rank> ranks{};
  std::int64_t base_time_ns = 0;  // CLOCK_REALTIME at ts 0
  std::string clocks{};           // a sentence on how hosts got on one axis; empty: one host
  const filter::Selection* asked = nullptr;  // null: all calls

  // NVTX ranges are no calls: of the filters, only ranks and steps are of them too.
  bool has_range(const read::Process& p, std::int64_t ts_ns) const {
    if (asked == nullptr) return true;
    const filter::Filter& f = asked->filter();
    return f.ops.empty() && f.sizes.empty() && f.comms.empty() && f.phases.empty() &&
           tables::in_steps(f.steps, found, p, ts_ns);
  }
};

// A format takes this of a rank's lines.
struct Sinks {
  // A call that was asked for, with its time on the device, or null.
  run::TimedCalls::Sink call;
  // A range, and when it began and ended, as far as that is known.
  using Moment = std::optional<std::int64_t>;
  std::function<void(const read::Range&, Moment from_ns, Moment to_ns)> range;
  std::function<void(const read::ThreadName&)> thread{};  // may be called again for a thread
};
void show_lines(const Exported& of, const read::Process& rank, const Sinks& to);

// Files with a line that can't be read are no part of an output: takes out their processes, and
// names them in `skipped`. Throws BadInput if none is left.
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

// The tables (README.md): as a SQLite database, as CSV files in a new folder, and as a data set of
// Parquet files. The first row has to be that of the job.
std::unique_ptr<TableWriter> sqlite_writer(const std::filesystem::path& name, bool indexes = true);
std::unique_ptr<TableWriter> csv_writer(const std::filesystem::path& folder);
std::unique_ptr<TableWriter> parquet_writer(const std::filesystem::path& folder);
// `progress` gets the number of processes done.
void write_tables(const Exported& of, TableWriter& to,
                  const std::function<void(std::size_t)>& progress);

// Another tool's format, with a file for each rank.
struct RankFormat {
  using Processes = std::vector<const read::Process*>;     // of a rank; as a rule there is one
  std::function<std::string(const Processes&)> file_name;  // compressed if it ends in .gz
  // Returns the number of calls that were timed on the device. A rank without any has no file.
  std::function<std::uint64_t(const Processes&, Output&)> write;
};
RankFormat kineto_traces(const Exported& of);   // as PyTorch's profiler writes it
RankFormat inspector_logs(const Exported& of);  // as NCCL's Inspector does

}  // namespace tprof::trace_export
