#include "export/csv_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "export/formats.h"

namespace tprof::trace_export {

void append_field(std::string& line, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    line += text;
    return;
  }
  line += '"';
  for (const char c : text) {
    if (c == '"') line += '"';
    line += c;
  }
  line += '"';
}

void CsvWriter::append(std::string& line, const Value& value,
                       const TableInfo::Column& /*column*/) const {
  if (const auto* integer = std::get_if<std::int64_t>(&value.held())) {
    fmt::format_to(std::back_inserter(line), "{}", *integer);
  } else if (const auto* real = std::get_if<double>(&value.held())) {
    fmt::format_to(std::back_inserter(line), "{}", *real);
  } else if (const auto* text = std::get_if<std::string_view>(&value.held())) {
    append_field(line, *text);
  }
}

std::string CsvWriter::path_of(TableName table, const Value& /*rank*/) const {
  return info_of(table).name + std::string(".csv");
}

void CsvWriter::fail(const std::string& path) {
  throw CantWrite(output_.part() / path, std::strerror(errno));
}

void CsvWriter::write(const File& file, const std::string& line) {
  if (std::fwrite(line.data(), 1, line.size(), file.out.get()) != line.size()) fail(file.path);
}

off_t CsvWriter::size_of(const File& file) {
  struct stat now {};
  if (std::fflush(file.out.get()) != 0 || fstat(fileno(file.out.get()), &now) != 0) fail(file.path);
  return now.st_size;
}

void CsvWriter::close(File& file) {
  if (file.out != nullptr && std::fclose(file.out.release()) != 0) fail(file.path);
}

// One file of a table is open at a time: a job of many ranks has more than a process may open.
void CsvWriter::turn_to(TableName table, std::string path) {
  File& file = open_[static_cast<std::size_t>(table)];
  if (file.out != nullptr && file.path == path) return;
  close(file);
  file.path = std::move(path);
  const bool is_new = made_.try_emplace(file.path, table).second;
  const std::filesystem::path in_folder = file.path;
  if (is_new && in_folder.has_parent_path()) output_.folder(in_folder.parent_path());
  const std::filesystem::path whole = output_.part() / file.path;
  const int fd =
      is_new ? output_.file(file.path) : ::open(whole.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  file.out.reset(fd < 0 ? nullptr : fdopen(fd, "a"));
  if (file.out == nullptr) fail(file.path);
  if (is_new) {
    std::string names;
    for (const TableInfo::Column& column : info_of(table).columns) {
      if (has(column)) names += (names.empty() ? "" : ",") + column.name;
    }
    write(file, names + "\r\n");
  }
  part_begins_.try_emplace(file.path, size_of(file));
}

void CsvWriter::row(TableName table, Row values) {
  turn_to(table, path_of(table, values.begin()[1]));
  line_.clear();
  auto column = info_of(table).columns.begin();
  for (const Value& value : values) {
    if (has(*column)) {
      if (&value != values.begin()) line_ += ',';
      append(line_, value, *column);
    }
    ++column;
  }
  line_ += "\r\n";
  write(open_[static_cast<std::size_t>(table)], line_);
}

void CsvWriter::begin_part() {
  part_begins_.clear();
  for (const File& file : open_) {
    if (file.out != nullptr) part_begins_[file.path] = size_of(file);
  }
}

void CsvWriter::take_back_part() {
  for (File& file : open_) close(file);
  for (const auto& [path, size] : part_begins_) {
    if (truncate((output_.part() / path).c_str(), size) != 0) fail(path);
  }
}

void CsvWriter::close_all() {
  // A table without rows is one that can be asked, too.
  for (std::size_t i = 0; i < open_.size(); ++i) {
    const auto table = static_cast<TableName>(i);
    if (open_[i].path.empty()) turn_to(table, path_of(table, 0));
    close(open_[i]);
  }
}

void CsvWriter::finish() {
  close_all();
  output_.publish();
}

std::unique_ptr<TableWriter> csv_writer(const std::filesystem::path& folder) {
  return std::make_unique<CsvWriter>(folder);
}

}  // namespace tprof::trace_export
