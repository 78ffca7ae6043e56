// Writes the tables as a SQLite database.
#include <fmt/format.h>
#include <sqlite3.h>

#include "export/formats.h"

namespace tprof::trace_export {
namespace {

// Text lives until the row is stored, so no copy is needed.
void bind(sqlite3_stmt* to, int place, const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value.held())) {
    sqlite3_bind_int64(to, place, *integer);
  } else if (const auto* real = std::get_if<double>(&value.held())) {
    sqlite3_bind_double(to, place, *real);
  } else if (const auto* text = std::get_if<std::string_view>(&value.held())) {
    sqlite3_bind_text(to, place, text->data(), static_cast<int>(text->size()), SQLITE_STATIC);
  } else {
    sqlite3_bind_null(to, place);
  }
}

class SqliteWriter : public TableWriter {
 public:
  SqliteWriter(const std::filesystem::path& name, bool indexes)
      : output_(name, NewOutput::Kind::file), indexes_(indexes) {
    // No locks are used: nobody else knows the file, and file systems of clusters may have none.
    sqlite3* db = nullptr;
    const int opened =
        sqlite3_open_v2(output_.part().c_str(), &db, SQLITE_OPEN_READWRITE, "unix-none");
    db_.reset(db);
    if (opened != SQLITE_OK) fail();
    // An unfinished database is deleted, so no journal on disk is needed.
    run("PRAGMA journal_mode=MEMORY");
    run(fmt::format("PRAGMA user_version={}", kTablesVersion));
    run("BEGIN");
    for (const TableInfo& table : tables()) make(table);
  }

  void row(TableName table, Row values) override {
    sqlite3_stmt* insert = inserts_[static_cast<std::size_t>(table)].get();
    int place = 0;
    for (const Value& value : values) bind(insert, ++place, value);
    if (sqlite3_step(insert) != SQLITE_DONE) fail();
    sqlite3_reset(insert);
  }

  void finish() override {
    inserts_.clear();
    for (const TableInfo& table : tables()) {
      int n = 0;
      if (!indexes_) break;
      for (const char* columns : table.indexes) {
        run(fmt::format("CREATE INDEX {0}_{1} ON {0} ({2})", table.name, ++n, columns));
      }
    }
    run("COMMIT");
    db_.reset();
    output_.publish();
  }

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };

  void make(const TableInfo& table) {
    std::string columns;
    std::string places;
    for (const auto& [column, type] : table.columns) {
      const bool first_of_all = table.name == std::string_view("processes") && columns.empty();
      columns += fmt::format("{}{} {}{}", columns.empty() ? "" : ", ", column, type,
                             first_of_all ? " PRIMARY KEY" : "");
      places += places.empty() ? "?" : ", ?";
    }
    run(fmt::format("CREATE TABLE {} ({})", table.name, columns));
    const std::string insert = fmt::format("INSERT INTO {} VALUES ({})", table.name, places);
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v3(db_.get(), insert.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement,
                           nullptr) != SQLITE_OK) {
      fail();
    }
    inserts_.emplace_back(statement);
  }
  void run(const std::string& sql) {
    if (sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail();
  }
  [[noreturn]] void fail() { throw read::CantWrite(output_.part(), sqlite3_errmsg(db_.get())); }

  NewOutput output_;
  const bool indexes_;
  std::unique_ptr<sqlite3, Close> db_;
  std::vector<std::unique_ptr<sqlite3_stmt, Close>> inserts_;
};

}  // namespace

std::unique_ptr<TableWriter> sqlite_writer(const std::filesystem::path& name, bool indexes) {
  return std::make_unique<SqliteWriter>(name, indexes);
}

}  // namespace tprof::trace_export
