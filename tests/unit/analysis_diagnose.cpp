// check/: what the checks of whole jobs (tests/tool/test_check*.py) are made of.
#include "catch2.h"
#include "check/names.h"

using namespace tprof;
using namespace tprof::check;

TEST_CASE("many ranks are counted, not listed") {
  std::vector<read::Process> processes(1000);
  std::vector<const read::Process*> odd;
  for (std::size_t i = 1; i < processes.size(); i += 2) {
    processes[i].header.rank = static_cast<std::int64_t>(i);
    odd.push_back(&processes[i]);
  }
  const std::string names = names_of(odd);
  CHECK(names.starts_with("ranks 1,3,5,"));
  CHECK(names.ends_with(",... (500 ranks)"));
  CHECK(names.size() < 130);
}
