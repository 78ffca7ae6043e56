// A file or a folder that appears under its name when all of it is there, and replaces nothing.
#pragma once

#include <filesystem>

#include "export/output.h"

namespace tprof::trace_export {

class NewOutput {
 public:
  enum class Kind { file, folder };
  // Makes it, empty, as part(). Throws BadInput where something has its name: a folder may be
  // there that is empty.
  NewOutput(const std::filesystem::path& name, Kind kind);

  const std::filesystem::path& name() const { return name_; }
  const std::filesystem::path& part() const { return part_; }
  // Of a folder: a new file in it, open for writing, or -1 and errno.
  int file(const std::string& in_folder);
  // Throws BadInput where something got its name meanwhile.
  void publish();

 private:
  std::filesystem::path name_;
  std::filesystem::path part_;
  Unfinished unfinished_;
};

}  // namespace tprof::trace_export
