// Small calls that may be gradients: they fill what is missing, and push nothing over.
#include <algorithm>

#include "analysis_budget_toy.h"
#include "budget/budget.h"
#include "catch2.h"

using namespace tprof;
using namespace tprof::test;

namespace {

Key sized(std::int64_t bytes_class, const std::string& dtype = "float32") {
  return {Bucket::ALLREDUCE, "ncclAllReduce", dtype, 2, bytes_class};
}

Moved floats(double calls, double elements) {
  return {calls, 4 * elements, elements};
}

// A gradient of each parameter: one of 5,000 elements, biases of 30 and 10.
Figures each_parameter() {
  return {{sized(14), floats(1, 5000)}, {sized(6), floats(2, 60)}, {sized(5), floats(3, 30)}};
}

constexpr double kParams = 5090;

Measured measured(const Figures& figures) {
  return {.from = Measured::From::lines,
          .steps = 4,
          .groups = {{.ranks = {0, 1}, .figures = figures, .often = figures}}};
}

Compared ddp(const Figures& figures, double params = kParams) {
  return compare(measured(figures), of_model({.ways = {Way::ddp},
                                              .params = params,
                                              .dtype = "float32",
                                              .reduce_dtype = "float32",
                                              .shards = 2}));
}

std::string all_of(const std::vector<std::string>& sentences) {
  std::string all;
  for (const std::string& s : sentences) all += s + "\n";
  return all;
}

}  // namespace

TEST_CASE("small gradients are told, and stay apart as norms and losses do", "[budget]") {
  Figures figures = each_parameter();
  figures[sized(2)] = floats(2, 2);
  const Compared c = ddp(figures);
  CHECK(c.within);
  CHECK(c.rows[0].moved == floats(1, 5000));
  REQUIRE(c.small.size() == 1);
  CHECK(c.small[0].moved == floats(7, 92));
  CHECK(all_of(c.notes) ==
        "ALLREDUCE: what is missing is taken for gradients of small parameters, among 7 small "
        "calls of 368 B\n");

  const Compared buckets = ddp({{sized(14), floats(1, kParams)}, {sized(2), floats(2, 2)}});
  CHECK(buckets.within);
  CHECK(buckets.notes.empty());
  CHECK(buckets.rows[0].moved.calls == 1);
  CHECK(buckets.small[0].moved.calls == 2);
}

TEST_CASE("gradients that lack are told, whatever small calls there are", "[budget]") {
  const Compared frozen = ddp({{sized(14), floats(1, kParams)}, {sized(2), floats(1, 1)}}, 12614);
  CHECK_FALSE(frozen.within);
  CHECK(frozen.rows[0].moved == floats(1, kParams));
  CHECK(frozen.small[0].moved.calls == 1);
  CHECK(frozen.notes.empty());

  const Compared some = ddp(each_parameter(), kParams + 7680);
  CHECK_FALSE(some.within);
  CHECK(has(all_of(some.sentences), "gradients of 5,000 elements are reduced"));
  CHECK(all_of(some.notes) ==
        "ALLREDUCE: 5 small calls of 360 B may be gradients of small parameters too, and are less "
        "than what is missing\n");
}

TEST_CASE("small calls of another type are no gradients", "[budget]") {
  Figures other = each_parameter();
  other.erase(sized(6));
  other[sized(6, "bfloat16")] = {4, 240, 120};
  CHECK_FALSE(ddp(other).within);
  // Small calls are not taken off what is over.
  CHECK_FALSE(ddp(each_parameter(), 4000).within);
}

TEST_CASE("a call that has become small is not missing of a run's budget", "[budget]") {
  const auto run = [](double last, double norms) {
    Figures figures = {{sized(17), floats(3, 100000)}};
    if (norms != 0) figures[sized(2)] = floats(norms, norms);
    if (last != 0) figures[sized(last < 4096 ? 13 : 14)] += floats(1, last);
    return measured(figures);
  };
  const Budget budget = of_run(run(4096, 1), 0.01);
  const Compared c = compare(run(4095, 1), budget);
  CHECK(c.within);
  CHECK(c.sentences.empty());
  CHECK(all_of(c.notes) ==
        "ALLREDUCE: what differs is taken for calls that are small here or in the budget's run\n");
  CHECK(c.rows[0].moved.calls == 3);
  // The budget's own norm is no reduction that lacks, though its bytes would do.
  const Budget wide = of_run(run(4096, 1), 0.2);
  CHECK_FALSE(compare(run(0, 1), wide).within);
  CHECK_FALSE(compare(run(0, 1), budget).within);

  // The other way round it is one more, and so many bytes more than 1 % allows.
  const Measured now = run(4097, 1);
  const Compared grown = compare(now, of_run(run(4095, 1), 0.01));
  CHECK(grown.within);
  CHECK(grown.notes == c.notes);
  CHECK_FALSE(compare(now, of_run(run(4095, 1), 0)).within);   // 8 B more
  CHECK_FALSE(compare(now, of_run(run(0, 1), 0.01)).within);   // nothing small is gone
  CHECK_FALSE(compare(now, of_run(run(0, 2), 0.001)).within);  // but a norm
}

TEST_CASE("replicas reduce a small root's gradients", "[budget]") {
  // 2 x 3,216 elements in layers, 416 in the root: each rank has half.
  Figures figures = fsdp_figures();
  const Key root{Bucket::ALLREDUCE, "nccl", "float32", 2, 10};
  figures[{Bucket::ALLREDUCE, "nccl", "float32", 2, 14}] = floats(2, 2 * 3216 * 4);
  figures[root] = floats(1, 416);
  Model model = toy(Way::hsdp);
  model.params = 4 * 2 * 3216 + 416;
  model.layers = 2;
  const auto reduced = [&](const Figures& of) {
    model.shards = 1;
    const Compared c = compare(measured(of), of_model(model));
    return *std::ranges::find(c.rows, Bucket::ALLREDUCE,
                              [](const auto& r) { return r.limit.bucket; });
  };
  CHECK(reduced(figures).within);
  figures.erase(root);
  figures[{Bucket::ALLREDUCE, "nccl", "float32", 2, 9}] = floats(1, 400);  // 16 too few
  CHECK_FALSE(reduced(figures).within);
}

TEST_CASE("ranks that have as many small calls share a sentence, and few sentences are said",
          "[budget]") {
  const auto said = [](const auto& norms_of) {  // of 250 ranks, each of which moves other bytes
    Measured m{.from = Measured::From::lines, .steps = 4};
    for (std::int64_t rank = 0; rank < 250; ++rank) {
      const double bytes = 1e6 + static_cast<double>(rank);
      m.groups.push_back({{rank},
                          {{key(Bucket::ALLTOALL), {1, bytes, bytes / 4}},
                           {sized(2), floats(norms_of(rank), norms_of(rank))}}});
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
