// Writes the tables as a data set of Parquet files in Hive's partitions:
// FOLDER/calls/run=RUN/attempt=0/ranks=00000-00063/part.parquet.
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

// Rows are written as text, which a part can be taken back from, and made Parquet at the end.
class ParquetWriter : public TableWriter {
 public:
  explicit ParquetWriter(const std::filesystem::path& folder);

  // The first row has to be that of the job, since it says which run this is.
  void row(TableName table, std::initializer_list<Value> values) override;
  void begin_part() override;
  void take_back_part() override;
  void finish() override;

 private:
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  // The file of a table that rows go to now.
  struct File {
    std::string partition{};
    std::string path{};
    std::unique_ptr<std::FILE, Close> out{};
  };
  void turn_to(TableName table, const std::string& partition);
  void close(File& file);

  NewOutput output_;
  std::string run_;  // its folders
  std::vector<File> open_;
  std::map<std::string, TableName> made_;
  std::map<std::string, off_t> part_begins_;  // of the files that the part has rows in
  std::string line_;
};

// Returns the name of a folder of Hive's, such as "run=a%2Fb".
std::string hive_folder(std::string_view key, std::string_view value);

}  // namespace tprof::trace_export
