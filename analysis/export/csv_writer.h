// Writes the tables as CSV (RFC 4180), one file each, with a header line.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "export/new_output.h"
#include "export/tables.h"

namespace tprof::trace_export {

class CsvWriter : public TableWriter {
 public:
  explicit CsvWriter(const std::filesystem::path& folder);

  void row(TableName table, std::initializer_list<Value> values) override;
  void begin_part() override;
  void take_back_part() override;
  void finish() override;

 private:
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  struct File {
    std::filesystem::path path;
    std::unique_ptr<std::FILE, Close> out;
    off_t part_begins = 0;
  };
  void put(File& file, const std::string& line);

  NewOutput output_;
  std::vector<File> files_;
  std::string line_;
};

// Appends a field to a line, in quotes if it needs them.
void append_field(std::string& line, std::string_view text);
// The same of a value; nothing of one that is none.
void append_value(std::string& line, const Value& value);

}  // namespace tprof::trace_export
