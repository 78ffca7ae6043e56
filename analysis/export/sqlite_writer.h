// Writes the tables as a SQLite database.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <vector>

#include "export/new_output.h"
#include "export/tables.h"

namespace tprof::trace_export {

class SqliteWriter : public TableWriter {
 public:
  explicit SqliteWriter(const std::filesystem::path& name);

  void row(TableName table, std::initializer_list<Value> values) override;
  void begin_part() override;
  void take_back_part() override;
  void finish() override;

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  void run(const std::string& sql);
  [[noreturn]] void fail();

  NewOutput output_;
  std::unique_ptr<sqlite3, Close> db_;
  std::vector<std::unique_ptr<sqlite3_stmt, Close>> inserts_;
  bool in_part_ = false;
};

}  // namespace tprof::trace_export
