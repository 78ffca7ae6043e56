#include "catch2.h"
#include "interpose/base/lock_order.h"

using tprof::HeldLocks;
using tprof::LockOrder;

TEST_CASE("who has a lock may take one below it, and no other") {
  HeldLocks held;
  REQUIRE(held.forbids(LockOrder::graphs) == nullptr);
  held.took(LockOrder::graphs);
  REQUIRE(held.forbids(LockOrder::growing) == nullptr);
  REQUIRE(held.forbids(LockOrder::graphs) == std::string("graphs"));
  REQUIRE(held.forbids(LockOrder::start) == std::string("graphs"));
  held.took(LockOrder::growing);
  REQUIRE(held.forbids(LockOrder::tables) == std::string("growing"));
  held.gave_back(LockOrder::growing);
  REQUIRE(held.forbids(LockOrder::tables) == nullptr);
  held.gave_back(LockOrder::graphs);
  REQUIRE(!held.any());
}
