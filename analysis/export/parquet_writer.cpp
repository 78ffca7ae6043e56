// Writes the tables as a data set of Parquet files in Hive's partitions:
// FOLDER/calls/run=RUN/attempt=0/ranks=00000-00063/part.parquet. pyarrow makes them of a database:
// its files are what other tools are tested with, and it comes with what people train with. Arrow's
// C++ library is in no Debian.
#include <fmt/format.h>
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

constexpr int kNotFound = 127;  // a shell's word for a command that is not there

// Has what is in the folder written. Returns why it could not be done; empty: it is done.
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

class ParquetWriter : public TableWriter {
 public:
  explicit ParquetWriter(const std::filesystem::path& folder)
      : output_(folder, NewOutput::Kind::folder) {
    if (const std::string missing = run_python(output_.part()); !missing.empty()) {
      throw read::BadInput(fmt::format(
          "--parquet: pyarrow writes these files, and the first python3 in PATH has none ({}): pip "
          "install pyarrow, or put the folder of a Python that has it first in PATH",
          missing));
    }
    database_ = sqlite_writer(output_.part() / "tables.db", false);
  }

  void row(TableName table, Row values) override { database_->row(table, values); }
  void finish() override {
    database_->finish();
    const std::string failed = run_python(output_.part());
    if (!failed.empty()) throw read::CantWrite(output_.part(), failed);
    output_.publish();
  }

 private:
  NewOutput output_;
  std::unique_ptr<TableWriter> database_;
};

}  // namespace

std::unique_ptr<TableWriter> parquet_writer(const std::filesystem::path& folder) {
  return std::make_unique<ParquetWriter>(folder);
}

}  // namespace tprof::trace_export
