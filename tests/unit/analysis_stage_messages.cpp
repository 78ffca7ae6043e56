#include "run/stage_messages.h"

#include "catch2.h"

using namespace tprof;
using run::StageMessages;

namespace {

// The rank is 1 of 4 on communicator 1.
read::Process rank() {
  read::Process p;
  read::Comm& comm = p.comms[1];
  comm.id = "c";
  comm.nranks = 4;
  comm.rank = 1;
  return p;
}

void message(StageMessages& all, const char* name, std::int64_t peer, std::int64_t group,
             std::uint64_t bytes = 100) {
  static const read::Process kRank = rank();
  read::Event e;
  e.name = name;
  e.bucket = Bucket::P2P;
  e.comm = 1;
  e.numbered = true;
  e.peer = peer;
  e.group = group;
  e.bytes = bytes;
  all.take(kRank, e);
}

}  // namespace

TEST_CASE("messages to neighbours make a rank a stage, in groups or alone") {
  StageMessages all;
  message(all, "ncclRecv", 0, 0);
  message(all, "ncclSend", 2, 0);
  message(all, "ncclSend", 2, 7);
  message(all, "ncclRecv", 2, 7);
  message(all, "ncclSend", 0, 7);
  message(all, "ncclRecv", 0, 7);
  all.end();
  CHECK(all.of_stages() == 6);
  CHECK(all.exchanged() == 0);
}

TEST_CASE("an all-to-all makes none, and its bytes are told") {
  StageMessages all;
  for (const std::int64_t peer : {0, 1, 2, 3}) {  // also to itself, as PyTorch's
    message(all, "ncclSend", peer, 1, 10);
    message(all, "ncclRecv", peer, 1, 20);
  }
  for (const std::int64_t peer : {0, 2, 3}) {  // nothing to itself
    message(all, "ncclSend", peer, 2, 1);
    message(all, "ncclRecv", peer, 2, 1);
  }
  message(all, "ncclSend", 1, 3, 1000);  // of two ranks, one of which gets nothing
  message(all, "ncclRecv", 1, 3, 1000);
  all.end();
  CHECK(all.of_stages() == 0);
  CHECK(all.exchanged() == 4 * 30 + 6 + 2000);
}

TEST_CASE("a scatter is neither") {
  StageMessages all;
  for (const std::int64_t peer : {0, 2, 3}) message(all, "ncclSend", peer, 1);
  all.end();
  CHECK(all.of_stages() == 0);
  CHECK(all.exchanged() == 0);
}

TEST_CASE("groups of one number after the other are not one") {
  StageMessages all;
  message(all, "ncclSend", 0, 1);
  message(all, "ncclSend", 2, 2);
  message(all, "ncclSend", 3, 0);
  message(all, "ncclSend", 0, 0);
  all.end();
  CHECK(all.of_stages() == 4);
}
