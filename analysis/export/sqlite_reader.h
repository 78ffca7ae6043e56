// Rows of a SQLite file that another tool wrote.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace tprof::trace_export {

class SqliteReader {
 public:
  // By its first bytes.
  static bool reads(const std::filesystem::path& file);

  // It, and each of the following, throws BadInput for what can't be read.
  explicit SqliteReader(const std::filesystem::path& file);

  class Row {
   public:
    explicit Row(sqlite3_stmt* row) : row_(row) {}
    std::optional<std::int64_t> integer(int column) const;
    std::string_view text(int column) const;  // until the next row; empty: there is none

   private:
    sqlite3_stmt* row_;
  };
  void each_row(const std::string& sql, const std::function<void(const Row&)>& f) const;

  // Empty: there is no such table.
  std::set<std::string, std::less<>> columns(std::string_view table) const;

 private:
  [[noreturn]] void fail() const;

  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  std::filesystem::path file_;
  std::unique_ptr<sqlite3, Close> db_;
};

}  // namespace tprof::trace_export
