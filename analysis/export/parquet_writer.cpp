// Writes the tables as a data set of Parquet files in Hive's partitions:
// FOLDER/calls/run=RUN/attempt=0/ranks=00000-00063/part.parquet.
#include <fmt/format.h>
#include <simdjson.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "export/csv_writer.h"
#include "export/formats.h"
#include "export/to_parquet.h"
#include "text/text.h"

namespace tprof::trace_export {
namespace {

// A rank's calls are some MB as Parquet, and tools like files of some hundred.
constexpr std::int64_t kRanksPerFile = 64;

// Only these have so many rows that a rank range is worth a file.
bool by_ranks(TableName table) {
  return table == TableName::calls || table == TableName::ranges;
}

// SQLite's types are those of values, Parquet's of columns.
std::string_view arrow_type(std::string_view type) {
  if (type == "INTEGER") return "int64";
  return type == "NUMERIC" ? "double" : "string";
}

// Returns the name of a folder of Hive's, such as "run=a%2Fb".
std::string hive_folder(std::string_view key, std::string_view value) {
  std::string folder = std::string(key) + '=';
  // Hive, and all that read its folders, take this for none.
  if (value.empty()) return folder += "__HIVE_DEFAULT_PARTITION__";
  for (const char c : value) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       std::string_view("-_.").find(c) != std::string_view::npos;
    folder += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return folder;
}

// Rows are written as text, which a part can be taken back from, and made Parquet at the end.
class ParquetWriter : public CsvWriter {
 public:
  explicit ParquetWriter(const std::filesystem::path& folder) : CsvWriter(folder) {
    require_pyarrow();
  }

  void row(TableName table, Row values) override;
  void finish() override;

 protected:
  std::string path_of(TableName table, const Value& rank) const override;
  // Readers add columns for the folders, which must not be there twice.
  bool has(const TableInfo::Column& column) const override { return column.name != "attempt"; }
  void append(std::string& line, const Value& value,
              const TableInfo::Column& column) const override;

 private:
  std::string run_;  // its folders
};

std::string ParquetWriter::path_of(TableName table, const Value& rank) const {
  std::string path = fmt::format("{}/{}", info_of(table).name, run_);
  if (by_ranks(table)) {
    const auto* number = std::get_if<std::int64_t>(&rank.held());
    std::string ranks;
    if (number != nullptr && *number >= 0) {
      const std::int64_t first = *number - *number % kRanksPerFile;
      ranks = fmt::format("{:05}-{:05}", first, first + kRanksPerFile - 1);
    }
    path += '/' + hive_folder("ranks", ranks);
  }
  return path + "/part.csv";
}

void ParquetWriter::append(std::string& line, const Value& value,
                           const TableInfo::Column& column) const {
  const auto* text = std::get_if<std::string_view>(&value.held());
  if (std::holds_alternative<double>(value.held()) && column.type == "INTEGER") {
    line += std::to_string(INT64_MAX);  // a sum beyond it
  } else if (text != nullptr && !simdjson::validate_utf8(*text)) {
    append_field(line, text::printable(*text));  // the name of a file may be any bytes
  } else {
    CsvWriter::append(line, value, column);
  }
}

void ParquetWriter::row(TableName table, Row values) {
  if (table == TableName::job) {
    const auto* id = std::get_if<std::string_view>(&values.begin()[2].held());
    const auto* attempt = std::get_if<std::int64_t>(&values.begin()[3].held());
    run_ = hive_folder("run", id == nullptr ? "" : *id) + '/' +
           hive_folder("attempt", attempt == nullptr ? "" : std::to_string(*attempt));
  }
  CsvWriter::row(table, values);
}

void ParquetWriter::finish() {
  close_all();
  nlohmann::json files = nlohmann::json::array();
  for (const auto& [csv, table] : made_) {
    const std::string parquet = csv.substr(0, csv.size() - 3) + "parquet";
    output_.expect(parquet);
    nlohmann::json columns;
    for (const auto& [name, type] : info_of(table).columns) columns[name] = arrow_type(type);
    files.push_back({{"csv", csv}, {"parquet", parquet}, {"columns", columns}});
  }
  to_parquet(output_.part(), files.dump());
  output_.publish();
}

}  // namespace

std::unique_ptr<TableWriter> parquet_writer(const std::filesystem::path& folder) {
  return std::make_unique<ParquetWriter>(folder);
}

}  // namespace tprof::trace_export
