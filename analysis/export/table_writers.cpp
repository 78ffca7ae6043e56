// Writes the tables as a SQLite database. CSV files (RFC 4180, with a header line) and a Parquet
// data set with Hive partitions, FOLDER/calls/run=RUN/attempt=0/ranks=00000-00063/part.parquet, are
// made of one. pyarrow makes the data set: other tools are tested with its files, and training
// environments have it. Debian lacks Arrow's C++ library.
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "children/child.h"
#include "export/formats.h"
#include "read/error.h"
#include "text/text.h"

namespace tprof::trace_export {

extern const std::string_view kToParquet;  // to_parquet.py

namespace {

constexpr const char* kDatabase = "tables.db";  // in a folder

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

// Appends a column of the current row, in quotes if it needs them.
void append(std::string& line, sqlite3_stmt* row, int column) {
  if (sqlite3_column_type(row, column) == SQLITE_FLOAT) {  // SQLite's text has fewer digits
    line += fmt::format("{}", sqlite3_column_double(row, column));
    return;
  }
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
  const std::string_view text(bytes == nullptr ? "" : bytes,
                              static_cast<std::size_t>(sqlite3_column_bytes(row, column)));
  const bool quoted = text.find_first_of(",\"\r\n") != text.npos;
  if (quoted) line += '"';
  for (const char c : text) {
    if (c == '"') line += '"';
    line += c;
  }
  if (quoted) line += '"';
}

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

}  // namespace

void TableWriter::Close::operator()(sqlite3* db) const {
  sqlite3_close_v2(db);
}

void TableWriter::Close::operator()(sqlite3_stmt* s) const {
  sqlite3_finalize(s);
}

TableWriter::TableWriter(const std::filesystem::path& name, Kind kind)
    : kind_(kind),
      output_(name, kind == Kind::sqlite ? NewOutput::Kind::file : NewOutput::Kind::folder) {
  if (kind_ == Kind::parquet) {
    if (const std::string missing = run_python(output_.part()); !missing.empty()) {
      throw read::BadInput(
          fmt::format("--parquet needs pyarrow, which the first python3 in PATH does not have "
                      "({}): pip install pyarrow, or put a Python that has it first in PATH",
                      missing));
    }
  }
  const std::filesystem::path file =
      kind_ == Kind::sqlite ? output_.part() : output_.part() / kDatabase;
  // A file that a signal has removed must not come back. Without locks: nobody else knows the file,
  // and cluster file systems may have none.
  const int create = kind_ == Kind::sqlite ? 0 : SQLITE_OPEN_CREATE;
  sqlite3* db = nullptr;
  const int opened =
      sqlite3_open_v2(file.c_str(), &db, SQLITE_OPEN_READWRITE | create, "unix-none");
  db_.reset(db);
  if (opened != SQLITE_OK) fail();
  // An unfinished database is deleted, so no journal on disk is needed.
  run("PRAGMA journal_mode=MEMORY");
  run(fmt::format("PRAGMA user_version={}", kTablesVersion));
  run("BEGIN");
  for (const TableInfo& table : tables()) make(table);
}

void TableWriter::make(const TableInfo& table) {
  std::string columns;
  std::string places;
  for (const auto& [column, type] : table.columns) {
    const bool first_of_all = table.name == std::string_view("processes") && columns.empty();
    columns += fmt::format("{}{} {}{}", columns.empty() ? "" : ", ", column, type,
                           first_of_all ? " PRIMARY KEY" : "");
    places += places.empty() ? "?" : ", ?";
  }
  run(fmt::format("CREATE TABLE {} ({})", table.name, columns));
  inserts_.push_back(prepare(fmt::format("INSERT INTO {} VALUES ({})", table.name, places)));
}

TableWriter::Statement TableWriter::prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v3(db_.get(), sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement,
                         nullptr) != SQLITE_OK) {
    fail();
  }
  return Statement(statement);
}

void TableWriter::run(const std::string& sql) {
  if (sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail();
}

void TableWriter::fail() {
  throw read::CantWrite(output_.part(), sqlite3_errmsg(db_.get()));
}

void TableWriter::row(TableName table, Row values) {
  sqlite3_stmt* insert = inserts_[static_cast<std::size_t>(table)].get();
  int place = 0;
  for (const Value& value : values) bind(insert, ++place, value);
  if (sqlite3_step(insert) != SQLITE_DONE) fail();
  sqlite3_reset(insert);
}

void TableWriter::write_csv(const TableInfo& table) {
  Output file(output_.part() / (table.name + std::string(".csv")), false);
  std::string line;
  for (const auto& column : table.columns) line += (line.empty() ? "" : ",") + column.name;
  const Statement rows = prepare(fmt::format("SELECT * FROM {}", table.name));
  int more = 0;
  do {
    file.put(line + "\r\n");
    line.clear();
    more = sqlite3_step(rows.get());
    for (int i = 0; more == SQLITE_ROW && i < sqlite3_column_count(rows.get()); ++i) {
      if (i != 0) line += ',';
      append(line, rows.get(), i);
    }
  } while (more == SQLITE_ROW);
  if (more != SQLITE_DONE) fail();
  file.close();
}

void TableWriter::finish() {
  inserts_.clear();
  for (const TableInfo& table : tables()) {
    int n = 0;
    if (kind_ == Kind::csv) write_csv(table);
    for (const char* columns : table.indexes) {
      if (kind_ != Kind::sqlite) break;
      run(fmt::format("CREATE INDEX {0}_{1} ON {0} ({2})", table.name, ++n, columns));
    }
  }
  run("COMMIT");
  db_.reset();
  if (kind_ == Kind::csv) std::filesystem::remove(output_.part() / kDatabase);
  if (kind_ == Kind::parquet) {
    const std::string failed = run_python(output_.part());
    if (!failed.empty()) throw read::CantWrite(output_.part(), failed);
  }
  output_.publish();
}

}  // namespace tprof::trace_export
