// Writes the tables as CSV (RFC 4180), with a header line, into a new folder.
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string_view>

#include "children/child.h"
#include "export/formats.h"
#include "read/error.h"
#include "text/text.h"

namespace tprof::trace_export {

extern const std::string_view kToParquet;  // to_parquet.py

namespace {

// Appends a field to a line, in quotes if it needs them.
void append(std::string& line, const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value.held())) {
    fmt::format_to(std::back_inserter(line), "{}", *integer);
  } else if (const auto* real = std::get_if<double>(&value.held())) {
    fmt::format_to(std::back_inserter(line), "{}", *real);
  } else if (const auto* text = std::get_if<std::string_view>(&value.held())) {
    const bool quoted = text->find_first_of(",\"\r\n") != text->npos;
    if (quoted) line += '"';
    for (const char c : *text) {
      if (c == '"') line += '"';
      line += c;
    }
    if (quoted) line += '"';
  }
}

class CsvWriter : public TableWriter {
 public:
  explicit CsvWriter(const std::filesystem::path& folder)
      : output_(folder, NewOutput::Kind::folder) {
    for (const TableInfo& table : tables()) {
      const auto path = output_.part() / (table.name + std::string(".csv"));
      files_.emplace_back(std::fopen(path.c_str(), "we"), std::fclose);
      if (files_.back() == nullptr) fail();
      std::string names;
      for (const auto& column : table.columns) names += (names.empty() ? "" : ",") + column.name;
      write(files_.back().get(), names + "\r\n");
    }
  }

  void row(TableName table, Row values) override {
    line_.clear();
    for (const Value& value : values) {
      if (&value != values.begin()) line_ += ',';
      append(line_, value);
    }
    line_ += "\r\n";
    write(files_[static_cast<std::size_t>(table)].get(), line_);
  }

  void finish() override {
    for (File& file : files_) {
      if (std::fclose(file.release()) != 0) fail();
    }
    output_.publish();
  }

 private:
  using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

  [[noreturn]] void fail() { throw read::CantWrite(output_.part(), std::strerror(errno)); }
  void write(std::FILE* file, std::string_view line) {
    if (std::fwrite(line.data(), 1, line.size(), file) != line.size()) fail();
  }

  NewOutput output_;
  std::vector<File> files_;
  std::string line_;
};

// Writes the tables as a SQLite database.

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
    // Without locks: nobody else knows the file, and cluster file systems may have none.
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

constexpr int kNotFound = 127;  // a shell's exit code for an unknown command

// Converts the folder's contents. Returns why it failed; empty: done.
std::string run_python(const std::filesystem::path& folder) {
  const std::string script(kToParquet);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> said(std::tmpfile(), std::fclose);
  if (said == nullptr) return std::strerror(errno);
  children::Child child(
      [&] {
        if (chdir(folder.c_str()) != 0) return errno;
        dup2(fileno(said.get()), STDOUT_FILENO);
        dup2(fileno(said.get()), STDERR_FILENO);
        execlp("python3", "python3", "-c", script.c_str(), nullptr);
        return kNotFound;
      },
      children::Child::Orphan::dies);
  if (child.pid() < 0) return std::strerror(errno);
  const int status = child.wait();
  if (!WIFEXITED(status)) return "python3 was killed while it made the Parquet files";
  if (WEXITSTATUS(status) == 0) return "";
  if (WEXITSTATUS(status) == kNotFound) return "there is no python3";
  std::string text(std::size_t{1} << 16, '\0');
  std::rewind(said.get());
  text.resize(std::fread(text.data(), 1, text.size(), said.get()));
  while (text.ends_with('\n')) text.pop_back();
  return text::printable(text.substr(text.rfind('\n') + 1));
}

class ParquetWriter : public TableWriter {
 public:
  explicit ParquetWriter(const std::filesystem::path& folder)
      : output_(folder, NewOutput::Kind::folder) {
    if (const std::string missing = run_python(output_.part()); !missing.empty()) {
      throw read::BadInput(
          fmt::format("--parquet needs pyarrow, which the first python3 in PATH does not have "
                      "({}): pip install pyarrow, or put a Python that has it first in PATH",
                      missing));
    }
    database_ = sqlite_writer(output_.part() / "tables.db", false);
  }

  void row(TableName table, Row values) override { database_->row(table, values); }
  void finish() override {
    database_->finish();
    const std::string failed = run_python(output_.part());
    if (!failed.empty()) throw read::CantWrite(output_.part(), failed);
    output_.publish();
  }

 private:
  NewOutput output_;
  std::unique_ptr<TableWriter> database_;
};

}  // namespace

std::unique_ptr<TableWriter> csv_writer(const std::filesystem::path& folder) {
  return std::make_unique<CsvWriter>(folder);
}

std::unique_ptr<TableWriter> sqlite_writer(const std::filesystem::path& name, bool indexes) {
  return std::make_unique<SqliteWriter>(name, indexes);
}

// Writes the tables as a Parquet data set with Hive partitions:
// FOLDER/calls/run=RUN/attempt=0/ranks=00000-00063/part.parquet. pyarrow converts them from a
// database: other tools are tested with its files, and training environments have it. Debian lacks
// Arrow's C++ library.

std::unique_ptr<TableWriter> parquet_writer(const std::filesystem::path& folder) {
  return std::make_unique<ParquetWriter>(folder);
}

}  // namespace tprof::trace_export
