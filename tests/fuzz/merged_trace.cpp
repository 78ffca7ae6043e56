// Rank files of a folder. The input is split at the byte 0xff, and the first part may be a merged
// trace.
#include "support/fuzz.h"
#include "support/tool_run.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tprof::fuzz;
  namespace fs = std::filesystem;
  const fs::path run = folder() / "run";
  fs::remove_all(run);
  fs::create_directory(run);
  std::string_view text = text_of(data, size);
  for (int n = 0; n < 8 && !text.empty(); ++n) {
    const std::size_t end = text.find('\xff');
    const fs::path file = write_file("run/" + std::to_string(n) + ".json", text.substr(0, end));
    if (n == 0) run_all_readers(file);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  run_all_readers(run);
  return 0;
}
