// The tables of `nsys export --type sqlite` that are read, as NVIDIA describes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "export/sqlite_reader.h"

namespace tprof::trace_export {

// Serialized ids: the thread's in the last 24 bits, the process's in those before.
inline constexpr int kNsysPidBits = 24;
inline constexpr std::int64_t kNsysIdMask = (std::int64_t{1} << kNsysPidBits) - 1;
constexpr std::int64_t nsys_pid(std::int64_t global) {
  return (global >> kNsysPidBits) & kNsysIdMask;
}

enum class NsysLane { stream, thread, ranges };

struct NsysTable {
  std::string_view name;
  std::string_view category;
  NsysLane lane;
  std::string_view global;                  // column of the serialized id
  std::vector<std::string_view> names;      // columns that have a name: the first that is there
  std::vector<std::string_view> more = {};  // columns that the lane or the name goes by
  std::vector<std::string_view> args = {};
};

const std::vector<NsysTable>& nsys_tables();

// A row, by the columns of the query.
struct NsysEvent {
  std::int64_t row = 0;  // its number in the table
  std::int64_t global = 0;
  std::int64_t begin_ns = 0;  // since the session began
  std::optional<std::int64_t> end_ns;
  std::string_view name;
  std::vector<std::optional<std::int64_t>> more;  // as NsysTable::more; text has none
  std::vector<std::optional<std::int64_t>> args;
};

// A file's rows. `pid`: of this process only; none: of all.
class NsysTables {
 public:
  NsysTables(const std::filesystem::path& file, std::optional<std::int64_t> pid);

  const SqliteReader& db() const { return db_; }
  bool has_strings() const { return strings_; }
  // Tables and columns of those above that are not there.
  std::vector<std::string> missing() const;

  // In their order. None where what a row needs is missing.
  void each_event(const NsysTable& table, const std::function<void(const NsysEvent&)>& f) const;

 private:
  bool here(const NsysTable& table, std::string_view column) const {
    return columns_.at(table.name).contains(column);
  }
  std::string select(const NsysTable& table) const;

  std::filesystem::path file_;
  SqliteReader db_;
  std::optional<std::int64_t> pid_;
  std::map<std::string_view, std::set<std::string, std::less<>>> columns_;
  bool strings_ = false;
};

}  // namespace tprof::trace_export
