// Tests what models should move, by numbers that were computed by hand or counted by PyTorch's own
// tests, and what differences are said to be made of.
#include <algorithm>

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

// The only sentence about figures that are not within.
std::string reason(const Model& model, const Figures& figures) {
  const Compared c = compared(model, figures);
  REQUIRE_FALSE(c.within);
  std::string all;
  for (const std::string& s : c.sentences) all += s + "\n";
  CAPTURE(all);
  REQUIRE(c.sentences.size() == 1);
  return c.sentences[0];
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

  Figures stray = fsdp_figures();
  stray[key(Bucket::ALLGATHER)] = {6, (13280 + 100) * 4, 13280 + 100};
  CHECK(reason(toy(Way::fsdp), stray) ==
        "ALLGATHER: 6 calls with 52.27 KiB a step, where 5 with 51.88 KiB or 6 with 53.50 KiB were "
        "expected, and no known mistake explains it");
}

TEST_CASE("gathers of what is padded are told as the gradients of it", "[budget]") {
  // 100 elements of padding, 60 of them the root's: 2 x (6,848 + 100) less the root's 416 + 60.
  Figures padded = {{key(Bucket::ALLGATHER), {5, 13420 * 4, 13420}},
                    {key(Bucket::RESHARDING), {3, 6948 * 4, 6948}}};
  CHECK(has(reason(toy(Way::fsdp), padded), "FSDP2's shards are padded by rows"));
  padded[key(Bucket::ALLGATHER)] = {5, 13700 * 4, 13700};
  CHECK(compared(toy(Way::fsdp), padded).sentences.size() == 2);
}

TEST_CASE("a wider type and several micro-batches are told together", "[budget]") {
  Model model = toy(Way::ddp);
  model.dtype = model.reduce_dtype = "bfloat16";
  const auto said = [&](const std::string& dtype, double bytes) {
    const double elements = bytes / size_of(dtype);
    return compared(model, {{key(Bucket::ALLREDUCE, dtype), {4, bytes, elements}}}).sentences;
  };
  const auto wide = said("float32", 2 * 6848 * 4.0);
  REQUIRE(wide.size() == 2);
  CHECK(has(wide[0], "ALLREDUCE moves float32 where bfloat16 was expected: 2 times the bytes"));
  CHECK(has(wide[1], "2 times as many gradients are reduced in a step"));
  CHECK(has(wide[1], "there are 2 micro-batches"));
  const auto as_wide = said("bfloat16", 4 * 6848 * 2.0);  // as many bytes
  REQUIRE(as_wide.size() == 1);
  CHECK(has(as_wide[0], "there are 4 micro-batches"));
  const auto once = said("float32", 6848 * 4.0);
  REQUIRE(once.size() == 1);
  CHECK(has(once[0], "ALLREDUCE moves float32 where bfloat16 was expected"));
}

TEST_CASE("a difference from a range has both its ends", "[budget]") {
  Model model = toy(Way::fsdp);
  model.root_params = -1;  // 6,848 to 13,696 elements, and what is padded
  Figures figures = fsdp_figures();
  figures[key(Bucket::ALLGATHER)] = {5, 4 * 5824, 5824};  // 4 KiB less than the least
  CHECK(has(reason(model, figures), "ALLGATHER: 4.00 KiB to 31.12 KiB a step less than expected"));
  figures[key(Bucket::ALLGATHER)] = {7, 4 * 13280, 13280};  // 4 without weights of the root
  CHECK(has(reason(model, figures), "ALLGATHER: 1 to 3 calls a step more than expected"));
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

TEST_CASE("what a model should move is within, and a norm is apart", "[budget]") {
  Figures figures = fsdp_figures();
  figures[key(Bucket::ALLREDUCE, "float32", true)] = {1, 4, 1};
  figures[key(Bucket::H2D, "byte")] = {1, 4096, 4096};
  const Compared c = compared(toy(Way::fsdp), figures);
  CHECK(c.within);
  CHECK(c.sentences.empty());
  REQUIRE(c.small.size() == 1);
  CHECK(c.small[0].bucket == Bucket::ALLREDUCE);
  figures[key(Bucket::ALLTOALL)] = {1, 4096, 1024};
  CHECK(has(reason(toy(Way::fsdp), figures), "no known mistake explains it"));
}

TEST_CASE("setup in a ledger is no difference, and ncclReduce is as good for ZeRO-2", "[budget]") {
  Figures figures = fsdp_figures();
  figures[key(Bucket::BROADCAST)] = {2, 6848 * 4, 6848};
  const Measured ledgers{.from = Measured::From::ledger, .steps = 4, .groups = {{{0}, figures}}};
  CHECK(compare(ledgers, of_model(toy(Way::fsdp))).within);
  CHECK_FALSE(compared(toy(Way::fsdp), figures).within);

  Figures owners = {{key(Bucket::REDUCE), {2, 6848 * 4, 6848}},
                    {key(Bucket::ALLGATHER), {1, 6848 * 4, 6848}}};
  CHECK(compared(toy(Way::zero2), owners).within);
  CHECK_FALSE(compared(toy(Way::zero3), owners).within);
}

TEST_CASE("ZeRO-2 that reduces after each micro-batch lacks no no_sync()", "[budget]") {
  const Figures twice = {{key(Bucket::REDUCE), {4, 2 * 6848 * 4, 2 * 6848}},
                         {key(Bucket::ALLGATHER), {1, 6848 * 4, 6848}}};
  const std::string said = reason(toy(Way::zero2), twice);
  CHECK(has(said, "or there are 2 micro-batches (--micro-batches)"));
  CHECK_FALSE(has(said, "no_sync"));
}

TEST_CASE("known mistakes are named where they account for all of it", "[budget]") {
  Figures kept = fsdp_figures();
  kept[key(Bucket::ALLGATHER)] = {3, 6848 * 4, 6848};
  CHECK(has(reason(toy(Way::fsdp), kept), "gathered once"));

  const Figures reduced = {{key(Bucket::ALLREDUCE), {3, 6848 * 4, 6848}}};
  CHECK(has(reason(toy(Way::fsdp), reduced), "NO_SHARD"));

  Model model = toy(Way::fsdp);
  model.params = 7000;
  CHECK(has(reason(model, fsdp_figures()),
            "of 6,848 elements are reduced, where --params says 7,000"));

  Figures buffers = fsdp_figures();
  buffers[key(Bucket::BROADCAST)] = {2, 4096, 1024};
  CHECK(has(reason(toy(Way::fsdp), buffers), "broadcast_buffers"));
}

TEST_CASE("two mistakes in one bucket are both named", "[budget]") {
  Model model = toy(Way::fsdp);
  model.keeps = true;
  model.dtype = "bfloat16";
  const Compared c = compared(model, fsdp_figures());
  REQUIRE(c.sentences.size() == 2);
  CHECK(has(c.sentences[0], "gathered twice"));
  CHECK(has(c.sentences[1], "ALLGATHER moves float32 where bfloat16"));
}

TEST_CASE("ranks that moved something else are named", "[budget]") {
  Figures odd = fsdp_figures();
  odd[key(Bucket::ALLGATHER)] = {10, 2 * 13280 * 4, 2 * 13280};
  const Measured measured{.from = Measured::From::lines,
                          .steps = 4,
                          .groups = {{{0, 1, 3}, fsdp_figures()}, {{2}, odd}}};
  const Compared c = compare(measured, of_model(toy(Way::fsdp)));
  CHECK_FALSE(c.within);
  CHECK(c.notes == std::vector<std::string>{"rank 2 moved something else than ranks 0,1,3"});
  for (const Row& row : c.rows) {
    CHECK(row.within == (row.ranks.size() == 3 || row.limit.bucket == Bucket::RESHARDING));
  }
}

TEST_CASE("a gather that is one too many is over the budget of those that are made", "[budget]") {
  Figures figures = fsdp_figures();
  figures[key(Bucket::ALLGATHER)] = {5 + 1, (13280 + 100) * 4, 13280 + 100};
  const Compared c = compared(toy(Way::fsdp), figures);
  const auto row =
      std::ranges::find(c.rows, Bucket::ALLGATHER, [](const Row& r) { return r.limit.bucket; });
  REQUIRE(row != c.rows.end());
  CHECK_FALSE(row->within);
  CHECK(row->moved.bytes - row->bytes.most <= 100 * 4);
  CHECK(row->moved.bytes - row->bytes.most > 0);
}

TEST_CASE("a gather in another type than the model's is beside its budget", "[budget]") {
  Figures figures = fsdp_figures();
  const double expected = figures[key(Bucket::ALLGATHER)].bytes;
  Key other = key(Bucket::ALLGATHER);
  other.dtype = "int64";
  figures[other] = {1, 80000, 10000};
  const Compared c = compared(toy(Way::fsdp), figures);
  CHECK_FALSE(c.within);
  std::vector<std::pair<double, bool>> rows;
  for (const Row& r : c.rows) {
    if (r.limit.bucket == Bucket::ALLGATHER) rows.emplace_back(r.moved.bytes, r.within);
  }
  CHECK(rows == std::vector<std::pair<double, bool>>{{expected, true}, {80000, false}});
}
