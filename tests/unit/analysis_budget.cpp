// Tests what models should move, by numbers that were computed by hand or counted by PyTorch's own
// tests, and what differences are said to be made of.
#include <algorithm>

#include "analysis_budget_toy.h"
#include "catch2.h"
#include "read/error.h"

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

// Returns what `against` says of 40 found steps: `first` and `second` by turns, which reduce the
// gradients and then gather so many parameters. Empty: nothing to ask.
std::string asked_of(double first, double second) {
  const auto measure = [&](std::uint64_t n) {
    const auto figures = [](double reduced, double gathered) {
      Figures all = {{key(Bucket::ALLREDUCE), {reduced, reduced * 6848 * 4, reduced * 6848}}};
      if (gathered != 0) all[key(Bucket::ALLGATHER)] = {1, gathered * 4, gathered};
      return all;
    };
    Measured m{.from = Measured::From::lines, .found = 40};
    const bool alike = first == second;
    m.may_be_micro_batches = n == 1;
    m.may_be_steps = n > 1;
    m.left_out = n == 1 && !alike ? 19 : 0;
    m.steps = 40 / n - m.left_out;
    const double k = static_cast<double>(n);
    m.groups = {{{0, 1}, figures(k, n == 1 ? first : k / 2 * (first + second))}};
    return m;
  };
  try {
    Model model = toy(Way::zero2);
    model.accumulate = Accumulate::every;
    against(model, measure);
  } catch (const read::BadInput& e) {
    return e.what();
  }
  return "";
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

TEST_CASE("what is within the budget by twos is asked for, and not blamed", "[budget]") {
  const std::string asked = asked_of(0, 6848);
  CAPTURE(asked);
  CHECK(has(asked, "whether the 40 that were found are steps or micro-batches"));
  CHECK(has(asked, "if 2 make a step, all is"));
  CHECK(has(asked, "--micro-batches 2"));
  CHECK(has(asked, "--steps 40"));
  CHECK(asked_of(0, 6000).empty());     // nor by twos
  CHECK(asked_of(6848, 6848).empty());  // each is within
}

TEST_CASE("ranks that have as many small calls share a sentence, and few sentences are said",
          "[budget]") {
  const auto said = [](const auto& norms_of) {  // of 250 ranks, each of which moves other bytes
    Measured m{.from = Measured::From::lines, .steps = 4};
    for (std::int64_t rank = 0; rank < 250; ++rank) {
      const double bytes = 1e6 + static_cast<double>(rank);
      m.groups.push_back({{rank},
                          {{key(Bucket::ALLTOALL), {1, bytes, bytes / 4}},
                           {key(Bucket::ALLREDUCE, "float32", true),
                            {norms_of(rank), 4 * norms_of(rank), norms_of(rank)}}}});
    }
    const std::string text = to_text(m, compare(m, {.others_fail = false}), SIZE_MAX);
    return text.substr(text.find("Small calls"));
  };
  CHECK(said([](std::int64_t rank) { return rank == 7 ? 2.0 : 1.0; })
            .starts_with("Small calls (norms, losses, barriers) are apart, on 0-6,8-249: 1 in "
                         "ALLREDUCE.\n"
                         "Small calls (norms, losses, barriers) are apart, on 7: 2 in ALLREDUCE.\n"
                         "Ranks "));
  const std::string many = said([](std::int64_t rank) { return static_cast<double>(rank + 1); });
  CHECK(std::ranges::count(many.substr(0, many.find("So are")), '\n') == 100);
  CHECK(has(many, "So are those of 150 other ranks.\n"));
}
