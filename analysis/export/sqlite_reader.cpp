#include "export/sqlite_reader.h"

#include <fstream>

#include "read/error.h"

namespace tprof::trace_export {

bool SqliteReader::reads(const std::filesystem::path& file) {
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  char begin[kMagic.size()] = {};
  std::ifstream in(file, std::ios::binary);
  return in.read(begin, sizeof begin) && std::string_view(begin, sizeof begin) == kMagic;
}

SqliteReader::SqliteReader(const std::filesystem::path& file) : file_(file) {
  // Nobody writes it any more, and file systems of clusters may have no locks.
  sqlite3* db = nullptr;
  const int opened = sqlite3_open_v2(file.c_str(), &db, SQLITE_OPEN_READONLY, "unix-none");
  db_.reset(db);
  if (opened != SQLITE_OK) fail();
  each_row("PRAGMA trusted_schema=OFF", [](const Row&) {});
}

void SqliteReader::fail() const {
  constexpr std::size_t kMost = 200;  // of what is damaged it may quote any part
  const std::string why = sqlite3_errmsg(db_.get());
  throw read::BadInput(file_, "can't be read: " + why.substr(0, kMost));
}

std::optional<std::int64_t> SqliteReader::Row::integer(int column) const {
  if (sqlite3_column_type(row_, column) != SQLITE_INTEGER) return std::nullopt;
  return sqlite3_column_int64(row_, column);
}

std::string_view SqliteReader::Row::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(row_, column));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(row_, column))};
}

void SqliteReader::each_row(const std::string& sql,
                            const std::function<void(const Row&)>& f) const {
  sqlite3_stmt* prepared = nullptr;
  if (sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &prepared, nullptr) != SQLITE_OK) fail();
  const std::unique_ptr<sqlite3_stmt, Close> statement(prepared);
  int step = SQLITE_ROW;
  while ((step = sqlite3_step(prepared)) == SQLITE_ROW) f(Row(prepared));
  if (step != SQLITE_DONE) fail();
}

std::set<std::string, std::less<>> SqliteReader::columns(std::string_view table) const {
  std::set<std::string, std::less<>> found;
  each_row("PRAGMA table_info(" + std::string(table) + ")",
           [&](const Row& row) { found.emplace(row.text(1)); });
  return found;
}

}  // namespace tprof::trace_export
