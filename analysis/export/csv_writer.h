// Writes the tables as CSV (RFC 4180), with a header line, into a new folder.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "export/new_output.h"
#include "export/tables.h"

namespace tprof::trace_export {

class CsvWriter : public TableWriter {
 public:
  explicit CsvWriter(const std::filesystem::path& folder)
      : output_(folder, NewOutput::Kind::folder), open_(tables().size()) {}

  void row(TableName table, Row values) override;
  void begin_part() override;
  void take_back_part() override;
  void finish() override;

 protected:
  // The file of rows of a rank, which is none where there are no rows.
  virtual std::string path_of(TableName table, const Value& rank) const;
  virtual bool has(const TableInfo::Column& /*column*/) const { return true; }
  virtual void append(std::string& line, const Value& value, const TableInfo::Column& column) const;
  void close_all();  // with a file for each table

  NewOutput output_;
  std::map<std::string, TableName> made_{};  // paths

 private:
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  // The file of a table that rows go to now.
  struct File {
    std::string path{};
    std::unique_ptr<std::FILE, Close> out{};
  };
  void turn_to(TableName table, std::string path);
  void write(const File& file, const std::string& line);
  off_t size_of(const File& file);
  void close(File& file);
  [[noreturn]] void fail(const std::string& path);

  std::vector<File> open_;
  std::map<std::string, off_t> part_begins_;  // of the files that the part has rows in
  std::string line_;
};

// Appends a field to a line, in quotes if it needs them.
void append_field(std::string& line, std::string_view text);

}  // namespace tprof::trace_export
