#include "live/folder_lines.h"

#include "read/error.h"
#include "read/folder.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::live {

void FolderLines::find_files() {
  for (const read::TraceFile& file : read::files_in(folder_)) {
    if (files_.contains(file.path)) continue;
    if (chosen_) {
      const auto header = read::beginning_of(file.path).header;
      if (!header) continue;  // it may still come
      if (!chosen_(file.path, *header)) {
        files_.emplace(file.path, std::nullopt);
        continue;
      }
    }
    const bool all = from_start_ || !first_;
    std::error_code gone;
    const std::uint64_t from = all ? 0 : std::filesystem::file_size(file.path, gone);
    if (!gone) files_.emplace(file.path, RankLines(file.path, from));
  }
  first_ = false;
}

void FolderLines::look(Format format, const Take& take) {
  find_files();
  for (auto& [path, file] : files_) {
    if (!file) continue;
    try {
      for (std::string lines; file->next(format, lines); lines.clear()) take(*file, lines);
    } catch (const read::BadInput& e) {
      text::say("tprof: {}; left out from here on\n", text::printable(e.what()));
      file.reset();
    }
  }
}

}  // namespace tprof::live
