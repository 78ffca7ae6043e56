#include "export/parquet_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <simdjson.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "export/csv_writer.h"
#include "export/to_parquet.h"
#include "text/text.h"

namespace tprof::trace_export {
namespace {

namespace fs = std::filesystem;

// Hive, and all that read its folders, take this for none.
constexpr std::string_view kNone = "__HIVE_DEFAULT_PARTITION__";
// A rank's calls are some MB as Parquet, and tools like files of some hundred.
constexpr std::int64_t kRanksPerFile = 64;

// Only these have so many rows that a rank range is worth a file.
bool by_ranks(TableName table) {
  return table == TableName::calls || table == TableName::ranges;
}

// Readers add columns for the folders, which must not be there twice.
bool is_in_the_path(std::string_view column) {
  return column == "attempt";
}

const TableInfo& info_of(TableName table) {
  return tables()[static_cast<std::size_t>(table)];
}

const Value& value_of(std::string_view column, TableName table,
                      std::initializer_list<Value> values) {
  const Value* value = values.begin();
  for (const auto& [name, type] : info_of(table).columns) {
    if (name == column) break;
    ++value;
  }
  return *value;
}

std::string text_of(const Value& value) {
  std::string text;
  if (const auto* held = std::get_if<std::string_view>(&value.held())) return std::string(*held);
  append_value(text, value);
  return text;
}

std::string folder_of_ranks(const Value& rank) {
  const auto* number = std::get_if<std::int64_t>(&rank.held());
  if (number == nullptr || *number < 0) return hive_folder("ranks", {});
  const std::int64_t first = *number - *number % kRanksPerFile;
  return hive_folder("ranks", fmt::format("{:05}-{:05}", first, first + kRanksPerFile - 1));
}

// SQLite's types are those of values, Parquet's of columns.
std::string_view arrow_type(std::string_view type) {
  if (type.starts_with("INTEGER")) return "int64";
  return type == "NUMERIC" ? "double" : "string";
}

void append(std::string& line, const Value& value, std::string_view type) {
  const auto* text = std::get_if<std::string_view>(&value.held());
  if (std::holds_alternative<double>(value.held()) && arrow_type(type) == "int64") {
    append_value(line, INT64_MAX);  // a sum beyond it
  } else if (text != nullptr && !simdjson::validate_utf8(*text)) {
    append_field(line, text::printable(*text));  // the name of a file may be any bytes
  } else {
    append_value(line, value);
  }
}

}  // namespace

std::string hive_folder(std::string_view key, std::string_view value) {
  std::string folder = std::string(key) + '=';
  if (value.empty()) return folder += kNone;
  for (const char c : value) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       std::string_view("-_.").find(c) != std::string_view::npos;
    folder += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return folder;
}

ParquetWriter::ParquetWriter(const fs::path& folder)
    : output_(folder, NewOutput::Kind::folder), open_(tables().size()) {
  require_pyarrow();
}

void ParquetWriter::row(TableName table, std::initializer_list<Value> values) {
  if (table == TableName::job) {
    run_ = hive_folder("run", text_of(value_of("run_id", table, values))) + '/' +
           hive_folder("attempt", text_of(value_of("attempt", table, values)));
  }
  turn_to(table, by_ranks(table) ? folder_of_ranks(value_of("rank", table, values)) : "");
  line_.clear();
  auto column = info_of(table).columns.begin();
  for (const Value& value : values) {
    const auto& [name, type] = *column++;
    if (is_in_the_path(name)) continue;
    if (&value != values.begin()) line_ += ',';
    append(line_, value, type);
  }
  line_ += "\r\n";
  File& file = open_[static_cast<std::size_t>(table)];
  if (std::fwrite(line_.data(), 1, line_.size(), file.out.get()) != line_.size()) {
    throw CantWrite(output_.part() / file.path, std::strerror(errno));
  }
}

// One file of a table is open at a time: a job of many ranks has more than a process may open.
void ParquetWriter::turn_to(TableName table, const std::string& partition) {
  File& file = open_[static_cast<std::size_t>(table)];
  if (file.out != nullptr && file.partition == partition) return;
  close(file);
  std::string folder = fmt::format("{}/{}", info_of(table).name, run_);
  if (!partition.empty()) folder += '/' + partition;
  const bool is_new = made_.try_emplace(folder, table).second;
  file.partition = partition;
  file.path = folder + "/part.csv";
  const fs::path path = output_.part() / file.path;
  if (is_new) output_.folder(folder);
  const int fd =
      is_new ? output_.file(file.path) : ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) throw CantWrite(path, std::strerror(errno));
  file.out.reset(fdopen(fd, "a"));
  if (file.out == nullptr) throw CantWrite(path, std::strerror(errno));
  if (is_new) {
    std::string names;
    for (const auto& [column, type] : info_of(table).columns) {
      if (!is_in_the_path(column)) names += (names.empty() ? "" : ",") + std::string(column);
    }
    names += "\r\n";
    if (std::fputs(names.c_str(), file.out.get()) < 0 || std::fflush(file.out.get()) != 0) {
      throw CantWrite(path, std::strerror(errno));
    }
  }
  struct stat now {};
  if (fstat(fd, &now) != 0) throw CantWrite(path, std::strerror(errno));
  part_begins_.try_emplace(file.path, now.st_size);
}

void ParquetWriter::close(File& file) {
  if (file.out != nullptr && std::fclose(file.out.release()) != 0) {
    throw CantWrite(output_.part() / file.path, std::strerror(errno));
  }
}

void ParquetWriter::begin_part() {
  part_begins_.clear();
  for (File& file : open_) {
    if (file.out == nullptr) continue;
    struct stat now {};
    if (std::fflush(file.out.get()) != 0 || fstat(fileno(file.out.get()), &now) != 0) {
      throw CantWrite(output_.part() / file.path, std::strerror(errno));
    }
    part_begins_[file.path] = now.st_size;
  }
}

void ParquetWriter::take_back_part() {
  for (File& file : open_) close(file);
  for (const auto& [path, size] : part_begins_) {
    if (truncate((output_.part() / path).c_str(), size) != 0) {
      throw CantWrite(output_.part() / path, std::strerror(errno));
    }
  }
}

void ParquetWriter::finish() {
  // A table without rows is one that can be asked, too.
  for (std::size_t i = 0; i < tables().size(); ++i) {
    const auto table = static_cast<TableName>(i);
    const bool none = open_[i].path.empty();
    if (none) turn_to(table, by_ranks(table) ? folder_of_ranks(0) : "");
  }
  for (File& file : open_) close(file);
  std::vector<ParquetJob> jobs;
  for (const auto& [folder, table] : made_) {
    ParquetJob& job =
        jobs.emplace_back(ParquetJob{folder + "/part.csv", folder + "/part.parquet", {}});
    output_.expect(job.parquet);
    for (const auto& [column, type] : info_of(table).columns) {
      job.columns.emplace_back(column, arrow_type(type));
    }
  }
  to_parquet(output_.part(), jobs);
  output_.publish();
}

}  // namespace tprof::trace_export
