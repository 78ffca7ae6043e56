// Writes the tables as CSV (RFC 4180), with a header line, into a new folder.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "export/formats.h"

namespace tprof::trace_export {
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

}  // namespace

std::unique_ptr<TableWriter> csv_writer(const std::filesystem::path& folder) {
  return std::make_unique<CsvWriter>(folder);
}

}  // namespace tprof::trace_export
