// The signature of a communicator and its marks, against a computation over all calls in a row.
#include <nlohmann/json.hpp>
#include <random>

#include "catch2.h"
#include "interpose_world.h"

using namespace tprof;
using namespace tprof::test;

namespace {

struct Call {
  int function;  // 0 AllReduce, 1 AllGather, 2 Broadcast
  std::size_t count;
  int root;
};

void make(Thread& t, ncclComm_t comm, const Call& c, ncclResult_t answer = ncclSuccess) {
  if (c.function == 0) all_reduce(t, comm, c.count, answer);
  if (c.function == 1) all_gather(t, comm, c.count, answer);
  if (c.function == 2) broadcast(t, comm, c.count, c.root, answer);
}

std::uint64_t mix_of(std::uint64_t seq, const Call& c) {
  constexpr std::string_view kNames[] = {"ncclAllReduce", "ncclAllGather", "ncclBroadcast"};
  constexpr std::uint8_t kDtypes_of[] = {7, 9, 4};
  return signature_mix(seq, fnv1a(kNames[c.function]), c.count, kDtypes_of[c.function],
                       c.function == 2 ? c.root : kNoPeer, c.function == 0 ? 1 : 0);
}

nlohmann::json signature_of(const View& view, std::uint32_t comm) {
  Sums sums;
  collect(view, sums, false);
  Text text;
  const Total* bin = sums.signatures.begin();
  while (bin != sums.signatures.end() && bin->key.comm < comm) ++bin;
  comm_signature(text, bin, sums.signatures.end(), comm);
  return nlohmann::json::parse(text.view());
}

// Computes the expected value by brute force: sums every prefix from its beginning.
nlohmann::json expected_signature(const std::vector<Call>& calls, std::uint32_t comm) {
  const auto prefix_sum = [&](std::size_t n) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += mix_of(i, calls[i]);
    char hex[17];
    std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(sum));
    return std::string(hex);
  };
  nlohmann::json marks = nlohmann::json::array();
  for (std::size_t n = 1; n <= calls.size(); n *= 2) marks.push_back(prefix_sum(n));
  return {{"comm", comm},
          {"collectives", calls.size()},
          {"signature", prefix_sum(calls.size())},
          {"marks", marks}};
}

std::vector<Call> some_calls(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Call> calls;
  for (std::size_t i = 0; i < n; ++i) {
    calls.push_back(
        {static_cast<int>(random() % 3), random() % 1000, static_cast<int>(random() % 4)});
  }
  return calls;
}

}  // namespace

TEST_CASE("signature and marks equal the brute force sum, whichever threads made the calls") {
  for (const std::size_t n : {0U, 1U, 2U, 3U, 4U, 5U, 7U, 8U, 100U, 1024U, 1500U}) {
    const std::vector<Call> calls = some_calls(n, static_cast<unsigned>(n) + 1);
    for (const unsigned threads : {1U, 3U}) {
      World world;
      std::vector<Thread*> all;
      for (unsigned i = 0; i < threads; ++i) all.push_back(&world.thread(i + 1, 64));
      ncclComm_t other = world.communicator(4);
      ncclComm_t comm = world.communicator(4);
      std::mt19937 random(9);
      for (const Call& c : calls) {
        Thread& t = *all[random() % threads];
        make(t, comm, c);
        if (random() % 3 == 0) make(t, other, {0, 1, 0});
        if (random() % 3 == 0) send(t, comm, 5, 1);                            // no collective
        if (random() % 3 == 0) make(t, comm, {0, 9, 0}, ncclInvalidArgument);  // gives its seq back
      }
      REQUIRE(signature_of(world.view(), 2) == expected_signature(calls, 2));
    }
  }
}

TEST_CASE("calls of a group count as if made one by one") {
  const std::vector<Call> calls = some_calls(20, 3);
  World world;
  Thread& t = world.thread(1, 64);
  ncclComm_t comm = world.communicator(2);
  for (std::size_t i = 0; i < calls.size(); i += 4) {
    group_started(t);
    for (std::size_t n = i; n < i + 4; ++n) make(t, comm, calls[n]);
    group_ended(t, 0, 0, ncclSuccess, false);
  }
  CHECK(signature_of(world.view(), 1) == expected_signature(calls, 1));
}

TEST_CASE("anything that differs in one call changes the signature from its mark on") {
  const std::vector<Call> calls = some_calls(64, 4);
  const auto reference = expected_signature(calls, 1);
  for (std::size_t at = 0; at < calls.size(); at += 7) {
    for (int what = 0; what < 3; ++what) {
      std::vector<Call> changed = calls;
      if (what == 0) changed[at].function = (changed[at].function + 1) % 3;
      if (what == 1) ++changed[at].count;
      if (what == 2) std::swap(changed[at].count, changed[(at + 1) % 64].count);
      if (what == 2 && calls[at].count == calls[(at + 1) % 64].count) continue;
      World world;
      Thread& t = world.thread(1, 64);
      ncclComm_t comm = world.communicator(2);
      for (const Call& c : changed) make(t, comm, c);
      const auto signature = signature_of(world.view(), 1);
      REQUIRE(signature["signature"] != reference["signature"]);
      const std::size_t first = what == 2 ? std::min(at, (at + 1) % 64) : at;
      for (std::size_t k = 0; k < 7; ++k) {
        // Mark k covers the first 2^k calls.
        const bool before = (std::size_t{1} << k) <= first;
        REQUIRE((signature["marks"][k] == reference["marks"][k]) == before);
      }
    }
  }
}

TEST_CASE("every argument reaches the mix") {
  const std::uint64_t one = signature_mix(5, 6, 7, 8, 9, 2);
  CHECK(signature_mix(6, 6, 7, 8, 9, 2) != one);
  CHECK(signature_mix(5, 7, 7, 8, 9, 2) != one);
  CHECK(signature_mix(5, 6, 8, 8, 9, 2) != one);
  CHECK(signature_mix(5, 6, 7, 9, 9, 2) != one);
  CHECK(signature_mix(5, 6, 7, 8, kNoPeer, 2) != one);
  CHECK(signature_mix(5, 6, 7, 8, 9, 3) != one);
}
