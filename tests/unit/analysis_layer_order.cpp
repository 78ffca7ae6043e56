// stats/: the order of what passes gather, and which call is at which place of it.
#include "catch2.h"
#include "stats/layer_names.h"
#include "stats/layer_order.h"

using namespace tprof;
using stats::Sizes;

namespace {

using Told = std::vector<std::optional<std::size_t>>;
constexpr std::nullopt_t none = std::nullopt;

}  // namespace

TEST_CASE("calls are at places of an order where there is one way only") {
  using Places = std::vector<std::size_t>;
  const Sizes order = {9, 5, 5, 7, 5};
  CHECK(stats::places_in(order, order) == Places{0, 1, 2, 3, 4});
  CHECK(stats::places_in({5, 5, 7, 5}, order) == Places{1, 2, 3, 4});  // the first is still there
  CHECK(stats::places_in({9, 7}, order) == Places{0, 3});
  CHECK(stats::places_in({7, 5}, order) == Places{3, 4});
  CHECK(stats::places_in({9, 5, 7}, order) == none);  // the 5 is either of two
  CHECK(stats::places_in({5}, order) == none);
  CHECK(stats::places_in({7, 9}, order) == none);
  CHECK(stats::places_in({9, 5, 5, 7, 5, 5}, order) == none);
  CHECK(stats::places_in({}, order) == Places{});
}

TEST_CASE("the order is the one that most passes are a part of") {
  const Sizes all = {9, 5, 5};
  CHECK(stats::common_order({{all, 6}}) == all);
  CHECK(stats::common_order({{all, 1}, {{5, 5}, 5}}) == all);  // kept from an evaluation before it
  CHECK(stats::common_order({{all, 3}, {{9, 5, 5, 9, 5, 5}, 1}}) == all);  // two passes as one
  CHECK(stats::common_order({{{8, 8}, 1}, {all, 3}}) == all);
  CHECK(stats::common_order({{{}, 9}, {all, 1}}) == all);
  CHECK(stats::common_order({}).empty());
}

TEST_CASE("a backward pass comes to its units in reverse") {
  const Sizes forward = {9, 5, 5, 7};
  const auto reverse = [&](const Sizes& calls) { return stats::places_in_reverse(calls, forward); };
  CHECK(reverse({7, 5, 5, 9}) == Told{3, 2, 1, 0});
  CHECK(reverse({7, 5, 5}) == Told{3, 2, 1});
  CHECK(reverse({9, 7, 5, 5}) == Told{0, 3, 2, 1});  // a root that is gathered first again
  CHECK(reverse({7, 7, 9}) == Told{3, 3, 0});        // computed again
  CHECK(reverse({7, 5, 9}) == Told{3, none, 0});     // either of two
  CHECK(reverse({5, 5, 5}) == Told{none, none, none});
  CHECK(reverse({4, 7}) == Told{none, 3});
}

TEST_CASE("units of several sizes in another order than the reverse are not told") {
  const Sizes forward = {5, 6, 5, 6};
  CHECK(stats::places_in_reverse({6, 5, 6, 5}, forward) == Told{3, 2, 1, 0});
  CHECK(stats::places_in_reverse({5, 6, 5, 6}, forward) == Told{none, none, none, none});
  CHECK(stats::places_in_reverse({5, 5}, forward) == Told{2, 0});
}

TEST_CASE("FSDP's ranges around communication name the module, others do not") {
  CHECK(stats::module_of("FSDP::all_gather (blocks.3)") == "blocks.3");
  CHECK(stats::module_of("FSDP::post_backward_reduce (a.b, a.c)") == "a.b, a.c");
  for (const char* name :
       {"FSDP::all_gather", "FSDP::all_gather ()", "FSDP::pre_forward (blocks.3)",
        "FSDP::backward_prefetch for blocks.2", "all_gather (blocks.3)", ""}) {
    CHECK(stats::module_of(name).empty());
  }
}
