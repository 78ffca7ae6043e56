// A file or a folder that gets its name only when it is complete, and replaces nothing.
#pragma once

#include <filesystem>

#include "export/output.h"

namespace tprof::trace_export {

class NewOutput {
 public:
  enum class Kind { file, folder };
  // Makes it, empty, as part(). Throws BadInput if something has its name already. An empty folder
  // may have it if a folder is to be made.
  NewOutput(const std::filesystem::path& name, Kind kind);

  const std::filesystem::path& name() const { return name_; }
  const std::filesystem::path& part() const { return part_; }
  // Makes a new file in the folder, and returns it open for writing, or -1 and errno.
  int file(const std::string& in_folder);
  // Makes a folder in the folder, if it is not there, and those that it is in. Throws BadInput.
  void folder(const std::string& in_folder);
  // Says which file another program will make in the folder.
  void expect(const std::string& in_folder) { unfinished_.add(part_ / in_folder); }
  // Gives it its name. Throws BadInput if something else got the name meanwhile.
  void publish();

 private:
  std::filesystem::path name_;
  std::filesystem::path part_;
  Unfinished unfinished_;
};

}  // namespace tprof::trace_export
