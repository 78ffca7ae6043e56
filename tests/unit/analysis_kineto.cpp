// launch/torch_profiler: the messages of PyTorch's profiler, and what it is told.
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "catch2.h"
#include "launch/torch_profiler.h"
#include "read/error.h"

using namespace tprof;

namespace {

// Puts a message together as dynolog's fabric does.
std::string message(const std::string& type, const std::string& body) {
  std::string text(40, '\0');
  const std::uint64_t size = body.size();
  std::memcpy(text.data(), &size, sizeof size);
  std::memcpy(text.data() + 8, type.data(), type.size());
  return text + body;
}

std::string request(std::int32_t type, std::int32_t n, std::int32_t pid) {
  std::string body(16 + 4, '\0');
  std::memcpy(body.data(), &type, 4);
  std::memcpy(body.data() + 4, &n, 4);
  std::memcpy(body.data() + 16, &pid, 4);
  return body;
}

}  // namespace

TEST_CASE("what is no such request is none") {
  CHECK_FALSE(launch::kineto_request(""));
  CHECK_FALSE(launch::kineto_request(message("ctxt", request(3, 1, 4711))));
  CHECK_FALSE(launch::kineto_request(message("req", request(3, 0, 4711))));
  CHECK_FALSE(launch::kineto_request(message("req", "short")));
  const std::string whole = message("req", request(3, 1, 4711));
  REQUIRE(launch::kineto_request(whole));
  for (std::size_t n = 0; n < whole.size(); ++n)
    CHECK_FALSE(launch::kineto_request(whole.substr(0, n)));
  CHECK(launch::kineto_answer("A=1\n") == message("req", "A=1\n"));
}

TEST_CASE("steps for PyTorch's profiler are those that are asked for, or of the first window") {
  const auto of = [](const char* asked, const char* schedule) {
    const launch::TorchSteps s = launch::torch_steps_of(asked, schedule);
    return std::pair(s.first, s.last);
  };
  CHECK(of("", "") == std::pair<std::int64_t, std::int64_t>(10, 12));
  CHECK(of("100-103", "active=2") == std::pair<std::int64_t, std::int64_t>(100, 103));
  CHECK(of("7", "") == std::pair<std::int64_t, std::int64_t>(7, 7));
  // torch.profiler.schedule's active steps from 0 are 16, 17, 18.
  const char* whole = "skip_first=10,wait=5,warmup=1,active=3,repeat=2";
  CHECK(of("", whole) == std::pair<std::int64_t, std::int64_t>(17, 19));
  CHECK(of("", "skip_first=10,wait=5,active=3,skip_first_wait=1") ==
        std::pair<std::int64_t, std::int64_t>(11, 13));
  CHECK(of("", "active=5") == std::pair<std::int64_t, std::int64_t>(3, 5));
  CHECK(of("", "profiler") == std::pair<std::int64_t, std::int64_t>(10, 12));
  for (const char* bad : {"2", "9-8", "x", "3-", "-4", "3-4x", "99999999999"}) {
    CHECK_THROWS_AS(launch::torch_steps(bad), read::BadInput);
  }
}
