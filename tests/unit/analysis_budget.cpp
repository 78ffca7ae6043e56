// Tests what models should move, by numbers that were computed by hand or counted by PyTorch's own
// tests.
#include "analysis_budget_toy.h"
#include "catch2.h"

using namespace tprof;
using namespace tprof::test;

namespace {

Limit of(const Model& model, Bucket bucket) {
  for (const Limit& limit : expected(model)) {
    if (limit.bucket == bucket) return limit;
  }
  return {.bucket = bucket, .calls = {0, 0}, .bytes = {0, 0}};
}

Compared compared(const Model& model, const Figures& figures) {
  const Measured measured{.from = Measured::From::lines, .steps = 4, .groups = {{{0, 1}, figures}}};
  return compare(measured, of_model(model));
}

}  // namespace

TEST_CASE("FSDP gathers each layer twice and its root once", "[budget]") {
  const Limit gathers = of(toy(Way::fsdp), Bucket::ALLGATHER);
  CHECK(gathers.calls.least == 5);
  CHECK(gathers.calls.most == 6);  // the root again
  CHECK(gathers.bytes.least == 13280 * 4);
  CHECK(gathers.bytes.most >= 2 * 6848 * 4);
  CHECK(gathers.bytes.most <= (2 * 6848 + 96) * 4);  // 16 parameters in each of 3 units, twice
  const Limit scatters = of(toy(Way::fsdp), Bucket::RESHARDING);
  CHECK(scatters.calls.least == 3);
  CHECK(scatters.calls.most == 3);
  CHECK(scatters.bytes.least == 6848 * 4);

  Model kept = toy(Way::fsdp);
  kept.keeps = true;
  kept.dtype = "bfloat16";
  CHECK(of(kept, Bucket::ALLGATHER).calls.least == 3);
  CHECK(of(kept, Bucket::ALLGATHER).calls.most == 3);
  CHECK(of(kept, Bucket::ALLGATHER).bytes.least == 6848 * 2);
  CHECK(of(kept, Bucket::RESHARDING).bytes.least == 6848 * 4);
}

TEST_CASE("a root all of whose weights are in other units calls nothing", "[budget]") {
  Model model = toy(Way::fsdp);  // 2 layers
  const auto calls = [&](double root_params) {
    model.root_params = root_params;
    const Range gathers = of(model, Bucket::ALLGATHER).calls;
    const Range scatters = of(model, Bucket::RESHARDING).calls;
    return std::vector{gathers.least, gathers.most, scatters.least, scatters.most};
  };
  CHECK(calls(0) == std::vector<double>{4, 4, 2, 2});
  CHECK(calls(-1) == std::vector<double>{4, 6, 2, 3});  // nobody said
  CHECK(calls(416) == std::vector<double>{5, 6, 3, 3});
}

TEST_CASE("FSDP2's shards of GPT-2 are padded by rows, which a tolerance allows for", "[budget]") {
  // 50,257 x 768 tokens in 8 shards: 7 rows more.
  Model model = toy(Way::fsdp);
  model.params = 124439808;
  model.root_params = 39385344;
  model.layers = 12;
  model.shards = 8;
  const double gathered = 26187456.0 * 8 * 4;
  const double scattered = 15555648.0 * 8 * 4;
  CHECK(of(model, Bucket::ALLGATHER).calls.holds(25));
  CHECK(of(model, Bucket::ALLGATHER).bytes.holds(gathered));
  CHECK_FALSE(of(model, Bucket::RESHARDING).bytes.holds(scattered));
  model.tolerance = 0.0001;
  CHECK(of(model, Bucket::RESHARDING).bytes.holds(scattered));
}

TEST_CASE("a gather beyond the fewest has to bring the root's bytes", "[budget]") {
  const auto within = [](double calls, double elements, double tolerance = 0) {
    Figures figures = fsdp_figures();
    figures[key(Bucket::ALLGATHER)] = {calls, elements * 4, elements};
    Model model = toy(Way::fsdp);
    model.tolerance = tolerance;
    return compared(model, figures).within;
  };
  CHECK(within(5, 13280));
  CHECK(within(6, 13280 + 416));
  CHECK(within(5.5, 13280 + 208));      // in every other step
  CHECK_FALSE(within(6, 13280));        // a stray one of nothing
  CHECK_FALSE(within(6, 13280 + 100));  // or of something else
  CHECK_FALSE(within(5, 13280 + 416));
  CHECK(within(6, 13280 + 300, 0.01));
}

TEST_CASE("micro-batches gather each, and reduce once or each", "[budget]") {
  Model model = toy(Way::fsdp);
  model.micro_batches = 4;
  CHECK(of(model, Bucket::ALLGATHER).calls.least == 20);
  CHECK(of(model, Bucket::ALLGATHER).bytes.least == 4 * 13280 * 4);
  CHECK(of(model, Bucket::RESHARDING).calls.most == 3);
  model.accumulate = Accumulate::every;
  CHECK(of(model, Bucket::RESHARDING).calls.least == 12);
  CHECK(of(model, Bucket::RESHARDING).bytes.least == 4 * 6848 * 4);
  // DeepSpeed reduces after each micro-batch but with ZeRO-1.
  for (const auto& [way, times] : {std::pair(Way::zero1, 1), {Way::zero2, 4}}) {
    model.ways = {way};
    model.accumulate = Accumulate::by_way;
    CHECK(of(model, Bucket::ALLREDUCE).bytes.least == times * 6848 * 4);
    CHECK(of(model, Bucket::ALLGATHER).bytes.least == 6848 * 4);
  }
  model.ways = {Way::zero3};
  CHECK(of(model, Bucket::RESHARDING).bytes.least == 4 * 6848 * 4);
  CHECK(of(model, Bucket::ALLGATHER).bytes.holds(4 * 2 * 6848 * 4));
  CHECK(of(model, Bucket::ALLGATHER).bytes.holds(6848 * 4));
}

TEST_CASE("tensor parallelism", "[budget]") {
  // Megatron: 2 all-reduces of 2 x 1,024 tokens of 3,072 in each of 72 layers and both passes.
  Model megatron{.ways = {Way::tp},
                 .layers = 72,
                 .dtype = "float16",
                 .reduce_dtype = "float16",
                 .tokens = 2048,
                 .hidden = 3072};
  CHECK(of(megatron, Bucket::ALLREDUCE).calls.least == 288);
  CHECK(of(megatron, Bucket::ALLREDUCE).calls.most == 288);
  CHECK(of(megatron, Bucket::ALLREDUCE).bytes.most == 3623878656.0);
}
