#include "export/other_trace.h"

#include "export/other_chrome.h"

namespace tprof::trace_export {

std::unique_ptr<OtherTrace> open_other(const OtherSource& source) {
  return open_chrome(source.file);
}

}  // namespace tprof::trace_export
