#include "budget/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "budget/explain.h"
#include "text/text.h"

namespace tprof::budget {
namespace {

bool is_zero(Way way) {
  return way == Way::zero1 || way == Way::zero2;
}

std::string either_of(const Limit& limit) {
  if (limit.each.most == 0) return "";
  const auto with = [&](double calls) {
    const Range bytes = bytes_of(calls, limit.calls, limit.bytes, limit.each);
    return fmt::format("{:g} with {}", calls, bytes_text(bytes.least));
  };
  const bool two = limit.calls.most == limit.calls.least + 1;
  return with(limit.calls.least) + (two ? " or " : " to ") + with(limit.calls.most);
}

class Comparer {
 public:
  Comparer(const Measured& measured, const Budget& budget, Compared& to)
      : measured_(measured),
        budget_(budget),
        model_(budget.model.value_or(Model{})),
        either_(std::ranges::any_of(model_.ways, is_zero)),
        to_(to) {}

  void add(const Group& group) {
    std::set<Key> matched;
    for (const Limit& limit : budget_.limits) {
      Row row{.ranks = group.ranks, .limit = limit};
      for (const auto& [key, moved] : group.figures) {
        if (!is_of(key, limit)) continue;
        matched.insert(key);
        add_to(row, key, moved);
      }
      row.limit.bytes = bytes_of(row.moved.calls, limit.calls, limit.bytes, limit.each);
      row.either = either_of(limit);
      row.within = limit.calls.holds(row.moved.calls) && row.limit.bytes.holds(row.moved.bytes);
      put(std::move(row));
    }
    std::map<Bucket, Row> others;
    std::map<Bucket, Moved> small;
    for (const auto& [key, moved] : group.figures) {
      if (matched.contains(key)) continue;
      if (is_small(key)) {
        small[key.bucket] += moved;
      } else if (key.bucket <= Bucket::OTHER_COLL) {
        Row& row = others[key.bucket];
        row.limit.bucket = key.bucket;
        add_to(row, key, moved);
      }
    }
    for (const auto& [bucket, moved] : small) to_.small.push_back({group.ranks, bucket, moved});
    for (auto& [bucket, row] : others) {
      row.ranks = group.ranks;
      row.has_limit = false;
      row.within = !budget_.others_fail || is_copy(bucket) || is_setup(bucket);
      if (!row.within) row.limit.calls = row.limit.bytes = {0, 0};
      put(std::move(row));
    }
  }

 private:
  bool is_of(const Key& key, const Limit& limit) const {
    return bucket_of(key) == limit.bucket && !is_small(key) &&
           (limit.function.empty() || key.function == limit.function) &&
           (limit.dtype.empty() || key.dtype == limit.dtype);
  }
  bool is_small(const Key& key) const {
    return budget::is_small(key.bucket, key.bytes_class, model_);
  }
  // DeepSpeed reduces to the owner of a part (ncclReduce) or to all ranks, by a setting.
  Bucket bucket_of(const Key& key) const {
    return either_ && key.bucket == Bucket::REDUCE ? Bucket::ALLREDUCE : key.bucket;
  }
  // Frameworks send parameters from one rank to the others when they start.
  bool is_setup(Bucket bucket) const {
    return measured_.from == Measured::From::ledger && bucket == Bucket::BROADCAST;
  }
  static void add_to(Row& row, const Key& key, const Moved& moved) {
    row.moved += moved;
    if (std::ranges::find(row.dtypes, key.dtype) == row.dtypes.end())
      row.dtypes.push_back(key.dtype);
  }
  void put(Row row) {
    to_.within = to_.within && row.within;
    to_.rows.push_back(std::move(row));
  }

  const Measured& measured_;
  const Budget& budget_;
  Model model_;
  bool either_;
  Compared& to_;
};

}  // namespace

std::string bytes_text(double n) {
  return text::bytes(static_cast<std::uint64_t>(std::llround(n)));
}

Budget of_model(const Model& model) {
  Budget budget{.model = model};
  for (const Expected& e : expected(model)) {
    budget.limits.push_back(
        {.bucket = e.bucket, .calls = e.calls, .bytes = e.bytes, .each = e.each});
  }
  return budget;
}

bool has_copies(const Budget& budget) {
  return std::ranges::any_of(budget.limits, [](const Limit& l) { return is_copy(l.bucket); });
}

Budget of_run(const Measured& measured, double tolerance, std::int64_t nranks) {
  using Name = std::tuple<Bucket, std::string, std::string>;
  std::map<Name, std::vector<Moved>> all;  // of each group
  for (std::size_t g = 0; g < measured.groups.size(); ++g) {
    for (const auto& [key, moved] : measured.groups[g].figures) {
      if (key.bucket > Bucket::OTHER_COLL || is_small(key.bucket, key.bytes_class, {})) continue;
      auto& groups = all[{key.bucket, key.function, key.dtype}];
      groups.resize(measured.groups.size());
      groups[g] += moved;
    }
  }
  Budget budget{.nranks = nranks};
  for (const auto& [name, groups] : all) {
    const auto range = [&of = groups](double Moved::*figure, double share) {
      const auto [least, most] = std::ranges::minmax(of, {}, figure);
      return Range{least.*figure * (1 - share), most.*figure * (1 + share)};
    };
    const auto& [bucket, function, dtype] = name;
    Limit limit{bucket, function, dtype, range(&Moved::calls, 0), range(&Moved::bytes, tolerance)};
    // Copies are not the same in each step, as batches, evaluations and checkpoints make them.
    if (is_copy(bucket)) limit.calls = {}, limit.bytes.least = 0;
    budget.limits.push_back(limit);
  }
  return budget;
}

Compared compare(const Measured& measured, const Budget& budget) {
  Compared c;
  Comparer comparer(measured, budget, c);
  for (const Group& group : measured.groups) comparer.add(group);
  c.sentences = explain(c.rows, budget);
  if (measured.groups.size() > 1) {
    const std::vector<std::int64_t>& most = measured.groups[0].ranks;
    std::vector<std::int64_t> others;
    for (std::size_t g = 1; g < measured.groups.size(); ++g) {
      const auto& ranks = measured.groups[g].ranks;
      others.insert(others.end(), ranks.begin(), ranks.end());
    }
    std::ranges::sort(others);
    c.notes.push_back(fmt::format("{} {} moved something else than {} {}",
                                  others.size() == 1 ? "rank" : "ranks", text::ranges(others),
                                  most.size() == 1 ? "rank" : "ranks", text::ranges(most)));
  }
  return c;
}

}  // namespace tprof::budget
