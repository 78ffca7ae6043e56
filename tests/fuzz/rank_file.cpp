// A rank file, as text.
#include "support/fuzz.h"
#include "support/tool_run.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tprof::fuzz;
  run_all_readers(write_file("rank.json", text_of(data, size)));
  return 0;
}
