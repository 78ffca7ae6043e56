#include "budget/budget.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "text/text.h"

namespace tprof::budget {
namespace {

// All rows of a bucket on the same ranks.
struct Whole {
  Bucket bucket = Bucket::ALLGATHER;
  bool within = true;
  Range calls{0, 0};
  Range bytes{0, 0};
  std::string either;  // "9 with 7.00 MiB or 10 with 8.00 MiB"; empty: any calls with any bytes
  Moved moved;
  std::set<std::string> dtypes;    // that occurred
  std::set<std::string> budgeted;  // that have limits
  // Elements on the same ranks: in ALLREDUCE; of gradients, which are in RESHARDING if that has
  // any.
  double all_reduced = 0;
  double gradients = 0;
  Moved small;  // small calls that may belong here
};

// Returns the factor between the two, if it is an integer from 2 to 64.
std::optional<double> times(double more, const Range& of) {
  const double k = of.least > 0 ? std::floor(more / of.least) : 0;
  return k >= 2 && k <= 64 ? std::optional(k) : std::nullopt;
}

std::string as_count(double n) {
  return fmt::format("{:.6g}", n);
}

// The difference from what was expected: "3", or "3 to 4" for a range with both ends.
std::string off_by(double moved, const Range& expected, std::string (*show)(double)) {
  const bool more = moved > expected.most;
  const std::string least = show(more ? moved - expected.most : expected.least - moved);
  if (more ? expected.least == 0 : std::isinf(expected.most)) return least;
  const std::string most = show(more ? moved - expected.least : expected.most - moved);
  return least == most ? least : least + " to " + most;
}

std::string either_of(const Limit& limit) {
  if (limit.each.most == 0) return "";
  const auto with = [&](double calls) {
    return fmt::format("{:g} with {}", calls, bytes_text(limit.bytes_with(calls).least));
  };
  const bool two = limit.calls.most == limit.calls.least + 1;
  return with(limit.calls.least) + (two ? " or " : " to ") + with(limit.calls.most);
}

std::string more_or_less(const Whole& w) {
  if (!w.either.empty()) {
    return fmt::format("{} with {} per step, but {} were expected", calls_text(w.moved.calls),
                       bytes_text(w.moved.bytes), w.either);
  }
  if (!w.bytes.holds(w.moved.bytes)) {
    return fmt::format("{} a step {} than expected", off_by(w.moved.bytes, w.bytes, bytes_text),
                       w.moved.bytes > w.bytes.most ? "more" : "less");
  }
  const std::string by = off_by(w.moved.calls, w.calls, as_count);
  return fmt::format("{} {} a step {} than expected", by, by == "1" ? "call" : "calls",
                     w.moved.calls > w.calls.most ? "more" : "fewer");
}

std::string wide(Bucket bucket, const std::string& is, const std::string& expected) {
  const double ratio = size_of(is) / size_of(expected);
  return fmt::format("{} moves {}, but {} was expected: {:g} times the bytes", bucket_name(bucket),
                     text::printable(is), text::printable(expected), ratio);
}

bool is_any(const Model& model, std::initializer_list<Way> ways) {
  return std::ranges::find_first_of(model.ways, ways) != model.ways.end();
}

bool is_gradients(Bucket bucket) {
  return bucket == Bucket::RESHARDING || bucket == Bucket::ALLREDUCE;
}

// A remark about a default type, with the option for the type that was moved.
std::string by_default(const Model& model, Bucket bucket, const std::string& is) {
  const bool gradients = is_gradients(bucket);
  if (model.dtype_given || (gradients && model.reduce_given)) return "";
  const bool gathers =
      !std::ranges::all_of(model.ways, [](Way way) { return way == Way::ddp || way == Way::tp; });
  return fmt::format(" ({} is the default: {} {} says otherwise)",
                     gradients ? model.reduce_dtype : model.dtype,
                     gradients && gathers ? "--reduce-dtype" : "--dtype", text::printable(is));
}

std::string elements(double n) {
  return text::thousands(static_cast<std::uint64_t>(std::llround(n)));
}

// Returns the limit of a bucket; nullopt: nothing is expected.
std::optional<Limit> limit_of(const Model& model, Bucket bucket) {
  for (const Limit& limit : expected(model)) {
    if (limit.bucket == bucket) return limit;
  }
  return std::nullopt;
}

// A common mistake, as a change to the model. `apply` returns false if there is nothing to change.
struct Mistake {
  bool (*apply)(Model& m, const Whole& w);
  std::string (*say)(const Model& is, const Model& expected, Bucket bucket);
};

constexpr Mistake kMistakes[] = {
    {[](Model& m, const Whole& w) {
       if (w.bucket != Bucket::ALLGATHER && w.bucket != Bucket::H2D) return false;
       m.keeps = !m.keeps;
       return true;
     },
     [](const Model& is, const Model&, Bucket) -> std::string {
       return !is.keeps
                  ? "each parameter is gathered twice in a step, for the forward and for the "
                    "backward pass: reshard_after_forward is on"
                  : "each parameter is gathered once in a step and kept for the backward pass: "
                    "reshard_after_forward is off";
     }},
    {[](Model& m, const Whole& w) {
       if (w.dtypes.size() != 1) return false;
       const std::string& is = *w.dtypes.begin();
       const double size = size_of(is_gradients(w.bucket) ? m.reduce_dtype : m.dtype);
       if (size_of(is) == size || size_of(is) == 0) return false;
       if (w.bucket != Bucket::RESHARDING) m.dtype = is;  // tensor parallelism's in ALLREDUCE
       if (is_gradients(w.bucket)) m.reduce_dtype = is;
       return true;
     },
     [](const Model& is, const Model& e, Bucket bucket) {
       const std::string& moved = is_gradients(bucket) ? is.reduce_dtype : is.dtype;
       const std::string& expected = is_gradients(bucket) ? e.reduce_dtype : e.dtype;
       return wide(bucket, moved, expected) + by_default(e, bucket, moved);
     }},
    {[](Model& m, const Whole& w) {
       if (!is_gradients(w.bucket) || m.micro_batches == 1) return false;
       m.reductions = reductions(m) == m.micro_batches ? 1 : m.micro_batches;
       return true;
     },
     [](const Model& is, const Model& e, Bucket) {
       if (is.reductions < reductions(e)) {
         return std::string("gradients are reduced once in a step, not in each micro-batch");
       }
       return fmt::format(
           "gradients are reduced {:g} times in a step{} instead of {}: no_sync(), or "
           "set_requires_gradient_sync(False), is missing",
           is.reductions, is.reductions == is.micro_batches ? ", in each micro-batch," : "",
           reductions(e) == 1 ? "once" : fmt::format("{:g} times", reductions(e)));
     }},
    {[](Model& m, const Whole& w) {
       if (w.bucket != Bucket::ALLGATHER) return false;
       const auto k = times(w.moved.calls, w.calls);
       if (!k || *k * w.calls.least != w.moved.calls || m.micro_batches != 1) return false;
       m.micro_batches = *k;
       return true;
     },
     [](const Model& is, const Model&, Bucket) {
       return fmt::format(
           "parameters are gathered for {:g} micro-batches in a step, but one was expected "
           "(--micro-batches)",
           is.micro_batches);
     }},
    {[](Model& m, const Whole& w) {
       const bool gathers = is_any(m, {Way::fsdp, Way::hsdp, Way::zero3});
       const bool instead = w.bucket == Bucket::ALLREDUCE || w.moved.calls == 0;
       if (!gathers || !instead || w.all_reduced < m.params) return false;
       m.all_reduced = true;
       return true;
     },
     [](const Model&, const Model&, Bucket) -> std::string {
       return "every rank reduces whole gradients (ALLREDUCE), but should only get its shard "
              "(RESHARDING): NO_SHARD, DDP, or reduce_scatter: false";
     }},
    {[](Model& m, const Whole& w) {
       const double params = w.gradients / reductions(m);
       if (params == m.params || params <= m.params / 2 || params >= m.params * 2) return false;
       m.root_more = std::max(0.0, params - m.params);  // may be padding of the root
       m.params = params;
       return true;
     },
     [](const Model& is, const Model& e, Bucket) {
       return fmt::format(
           "gradients of {} elements are reduced, but --params says {}: there are other or frozen "
           "parameters{}",
           elements(is.params), elements(e.params),
           is_any(e, {Way::fsdp, Way::hsdp})
               ? ", or FSDP2's shards are padded by rows (--tolerance)"
               : "");
     }},
    // Comes after the previous one, which explains less than twice as much: together they would
    // explain any number.
    {[](Model& m, const Whole& w) {
       // Another type explains more bytes already: that is an earlier mistake.
       const bool other_type =
           w.dtypes.size() == 1 && size_of(*w.dtypes.begin()) != size_of(m.reduce_dtype);
       if (!is_gradients(w.bucket) || other_type) return false;
       const auto k =
           times(w.moved.bytes, limit_of(m, w.bucket).value_or(Limit{.bytes = {0, 0}}).bytes);
       if (!k || m.micro_batches != 1 || std::fmod(w.moved.calls, *k) != 0) return false;
       m.reductions = *k;
       return true;
     },
     [](const Model& is, const Model& e, Bucket) {
       return fmt::format(
           "{:g} times as many gradients are reduced in a step as --params {} implies: either "
           "--params is too small, or there are {:g} micro-batches (--micro-batches){}",
           is.reductions, elements(e.params), is.reductions,
           // ZeRO-2 has to reduce after each micro-batch.
           is_any(e, {Way::zero2})
               ? ""
               : " and each reduces: no_sync(), or set_requires_gradient_sync(False), is missing");
     }},
};

bool fits(const Whole& w, const Model& model) {
  const std::optional<Limit> limit = limit_of(model, w.bucket);
  if (!limit) return false;
  return limit->holds(w.moved.calls, w.moved.bytes) ||
         (limit->each.most == 0 &&
          within_with_small(limit->calls, limit->bytes, w.moved, w.small, {}));
}

// Returns the smallest set of mistakes that explains exactly what was moved; empty if there is
// none.
std::vector<std::string> mistakes(const Whole& w, const Model& model) {
  constexpr unsigned kAll = 1U << std::size(kMistakes);
  for (int size = 1; size <= 3; ++size) {
    for (unsigned set = 1; set < kAll; ++set) {
      if (std::popcount(set) != size) continue;
      Model changed = model;
      std::vector<std::string> said;
      bool all = true;
      for (std::size_t i = 0; i < std::size(kMistakes) && all; ++i) {
        if ((set >> i & 1U) == 0) continue;
        const Model before = changed;
        all = kMistakes[i].apply(changed, w);
        if (all) said.push_back(kMistakes[i].say(changed, before, w.bucket));
      }
      if (all && fits(w, changed)) return said;
    }
  }
  return {};
}

// Explains by the numbers alone, without a model.
std::vector<std::string> from_ratios(const Whole& w) {
  if (w.dtypes.size() == 1 && w.budgeted.size() == 1 && w.calls.holds(w.moved.calls)) {
    const std::string& is = *w.dtypes.begin();
    const std::string& expected = *w.budgeted.begin();
    const double ratio = size_of(is) / size_of(expected);
    if (ratio != 1 && (w.bytes * ratio).holds(w.moved.bytes)) {
      return {wide(w.bucket, is, expected)};
    }
  }
  const double calls = w.moved.calls;
  if (w.calls.holds(calls)) return {};
  const bool more = calls > w.calls.most;
  const double once = more ? w.calls.most : calls;
  const double twice = more ? calls : w.calls.least;
  const bool bytes = more ? w.moved.bytes <= 2 * w.bytes.most : 2 * w.moved.bytes >= w.bytes.least;
  if (w.bucket == Bucket::ALLGATHER && bytes && (twice == 2 * once || twice == 2 * once - 1)) {
    const char* often = more ? "twice" : "half";
    if (twice == 2 * once) {
      return {fmt::format(
          "each unit is gathered {} as often as in the budget: reshard_after_forward?", often)};
    }
    return {fmt::format("each unit but one (the root) is gathered {} as often as in the budget, {}",
                        often,
                        more ? "for the backward pass too: reshard_after_forward is on"
                             : "and kept for the backward pass: reshard_after_forward is off")};
  }
  const auto k = times(calls, w.calls);
  if (k && (w.calls * *k).holds(calls) && (w.bytes * *k).holds(w.moved.bytes)) {
    return {fmt::format(
        "{} makes the same calls {:g} times{}", bucket_name(w.bucket), *k,
        is_gradients(w.bucket) ? ": in each micro-batch, because no_sync() is missing?" : "")};
  }
  return {};
}

std::string without_mistake(const Whole& w, const Budget& budget) {
  const std::string how = fmt::format("{}: {}", bucket_name(w.bucket), more_or_less(w));
  if (w.bucket == Bucket::BROADCAST) {
    return how + ", such as broadcasts of buffers (DDP's broadcast_buffers)";
  }
  const bool gradients = budget.model && is_gradients(w.bucket) && w.gradients != 0;
  if (gradients && elements(w.gradients) != elements(budget.model->params)) {
    return fmt::format("{}: gradients of {} elements are reduced, but --params says {}", how,
                       elements(w.gradients), elements(budget.model->params));
  }
  return how + ", and no known mistake explains it";
}

// Says which of the models that a job may be taken for explain all that it moved; empty: none does,
// or the budget's own.
std::string other_ways(const std::map<Bucket, Whole>& wholes, const Budget& budget) {
  if (!budget.model || budget.model->ways.size() != 1) return "";
  std::vector<std::string_view> all;
  for (const Way way : {Way::ddp, Way::fsdp, Way::zero1, Way::zero2, Way::zero3}) {
    const auto explains = [&](bool keeps) {
      Model changed = *budget.model;
      changed.ways = {way};
      changed.keeps = keeps;
      const auto moved = [&](const Limit& limit) {
        return is_copy(limit.bucket) || wholes.contains(limit.bucket);
      };
      const auto expected_too = [&](const auto& of) {
        const Whole& w = of.second;
        return is_copy(w.bucket) ||
               (limit_of(changed, w.bucket) ? fits(w, changed) : w.moved.calls == 0);
      };
      return std::ranges::all_of(expected(changed), moved) &&
             std::ranges::all_of(wholes, expected_too);
    };
    const auto* row = std::ranges::find(kWays, way, &WayRow::way);
    if (!explains(false) && !explains(true)) continue;
    if (way == budget.model->ways[0]) return "";
    all.push_back(row->name);
  }
  if (all.empty()) return "";
  return fmt::format("this looks like {}, not {}", fmt::join(all, " or "),
                     std::ranges::find(kWays, budget.model->ways[0], &WayRow::way)->name);
}

}  // namespace

std::vector<std::string> explain(std::span<const Row> rows, const Budget& budget) {
  std::map<Bucket, Whole> wholes;
  for (const Row& row : rows) {
    Whole& w = wholes[row.limit.bucket];
    w.within = w.within && row.within;
    w.moved += row.moved;
    w.small = row.small;
    w.dtypes.insert(row.dtypes.begin(), row.dtypes.end());
    if (!row.has_limit) continue;
    w.calls = w.calls + row.limit.calls;
    w.bytes = w.bytes + row.bytes;
    w.either += either_of(row.limit);
    if (!row.limit.dtype.empty()) w.budgeted.insert(row.limit.dtype);
  }
  const double all_reduced = wholes[Bucket::ALLREDUCE].moved.elements;
  const double scattered = wholes[Bucket::RESHARDING].moved.elements;
  for (auto& [bucket, whole] : wholes) whole.bucket = bucket;
  std::vector<std::string> all;
  for (auto& [bucket, whole] : wholes) {
    if (whole.within) continue;
    whole.all_reduced = all_reduced;
    whole.gradients = scattered != 0 ? scattered : all_reduced;
    std::vector<std::string> said =
        budget.model ? mistakes(whole, *budget.model) : from_ratios(whole);
    if (said.empty()) {
      if (const std::string ways = other_ways(wholes, budget); !ways.empty()) return {ways};
      said.push_back(without_mistake(whole, budget));
    }
    all.insert(all.end(), said.begin(), said.end());
  }
  return all;
}

}  // namespace tprof::budget
