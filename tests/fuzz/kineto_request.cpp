// A message to the socket of `tprof run --with-torch-profiler`. Any process of the host may send
// one.
#include "live/kineto.h"

#include "support/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tprof::fuzz;
  const std::string_view message = text_of(data, size);
  const auto asked = tprof::live::kineto_request(message);
  if (!asked) return 0;
  promise(message.find("req") == 8, "a request says that it is one");
  const std::string answer = tprof::live::kineto_answer(message);
  promise(answer.ends_with(message) && answer.size() == message.size() + 40, "an answer is whole");
  return 0;
}
