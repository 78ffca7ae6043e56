#include "export/csv_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>

namespace tprof::trace_export {
namespace {

[[noreturn]] void cant_write(const std::filesystem::path& file) {
  throw CantWrite(file, std::strerror(errno));
}

}  // namespace

void append_value(std::string& line, const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value.held())) {
    fmt::format_to(std::back_inserter(line), "{}", *integer);
  } else if (const auto* real = std::get_if<double>(&value.held())) {
    fmt::format_to(std::back_inserter(line), "{}", *real);
  } else if (const auto* text = std::get_if<std::string_view>(&value.held())) {
    append_field(line, *text);
  }
}

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

CsvWriter::CsvWriter(const std::filesystem::path& folder)
    : output_(folder, NewOutput::Kind::folder) {
  for (const TableInfo& table : tables()) {
    File& file = files_.emplace_back();
    const std::string name = table.name + std::string(".csv");
    file.path = output_.part() / name;
    const int fd = output_.file(name);
    if (fd < 0) cant_write(file.path);
    file.out.reset(fdopen(fd, "w"));
    if (file.out == nullptr) cant_write(file.path);
    std::string names;
    for (const auto& [column, type] : table.columns) {
      names += (names.empty() ? "" : ",") + std::string(column);
    }
    put(file, names + "\r\n");
  }
}

void CsvWriter::put(File& file, const std::string& line) {
  if (std::fwrite(line.data(), 1, line.size(), file.out.get()) != line.size()) {
    cant_write(file.path);
  }
}

void CsvWriter::row(TableName table, std::initializer_list<Value> values) {
  line_.clear();
  for (const Value& value : values) {
    if (&value != values.begin()) line_ += ',';
    append_value(line_, value);
  }
  line_ += "\r\n";
  put(files_[static_cast<std::size_t>(table)], line_);
}

void CsvWriter::begin_part() {
  for (File& file : files_) {
    file.part_begins = ftello(file.out.get());
    if (file.part_begins < 0) cant_write(file.path);
  }
}

void CsvWriter::take_back_part() {
  for (File& file : files_) {
    std::FILE* out = file.out.get();
    if (std::fflush(out) != 0 || ftruncate(fileno(out), file.part_begins) != 0 ||
        fseeko(out, file.part_begins, SEEK_SET) != 0) {
      cant_write(file.path);
    }
  }
}

void CsvWriter::finish() {
  for (File& file : files_) {
    if (std::fclose(file.out.release()) != 0) cant_write(file.path);
  }
  output_.publish();
}

}  // namespace tprof::trace_export
