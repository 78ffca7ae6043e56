#include "export/other_trace.h"

#include "export/other_chrome.h"
#include "export/other_nsys.h"
#include "export/sqlite_reader.h"

namespace tprof::trace_export {

std::unique_ptr<OtherTrace> open_other(const OtherSource& source) {
  if (SqliteReader::reads(source.file)) return open_nsys(source.file, source.pid);
  return open_chrome(source.file);
}

}  // namespace tprof::trace_export
