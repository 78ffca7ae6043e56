#include "budget/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "budget/explain.h"
#include "budget/say_small.h"
#include "budget/small_calls.h"
#include "text/text.h"

namespace tprof::budget {
namespace {

bool is_zero(Way way) {
  return way == Way::zero1 || way == Way::zero2;
}

// The bytes of that of the expected numbers of calls which comes nearest: a call more of the one
// may have as many calls as the other.
Range nearest(const Limit& limit, double moved) {
  const auto of = [&](double calls) {
    return bytes_of(calls, limit.calls, limit.bytes, limit.each);
  };
  const auto away = [&](const Range& r) {
    return std::max({r.least - moved, moved - r.most, 0.0});
  };
  const Range least = of(limit.calls.least);
  const Range most = of(limit.calls.most);
  return away(least) < away(most) ? least : most;
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
    objects_ = objects_of(group.figures);
    grown_.clear();
    Figures small = small_of(group.figures);
    std::set<Key> matched;
    for (const Limit& limit : budget_.limits) {
      Row row = row_of(group, limit);
      // Calls in the model's type may be all that was expected: then the rest is beside them.
      if (!row.within) {
        Limit of_dtype = limit;
        of_dtype.dtype = dtype_of(limit);
        if (Row alone = row_of(group, of_dtype); alone.within) row = std::move(alone);
      }
      for (const auto& [key, moved] : group.figures) {
        if (is_of(key, row.limit)) matched.insert(key);
      }
      if (!row.within) fill_up(row, small);
      if (!row.within) make_room(row, small);
      if (!row.within && limit.each.most != 0) row.limit.bytes = nearest(limit, row.moved.bytes);
      put(std::move(row));
    }
    std::map<Bucket, Row> others;
    for (const auto& [key, moved] : group.figures) {
      if (matched.contains(key) || is_small(key) || key.bucket > Bucket::OTHER_COLL) continue;
      Row& row = others[key.bucket];
      row.limit.bucket = key.bucket;
      add_to(row, key, moved);
    }
    std::map<Bucket, Moved> apart;
    for (const auto& [key, moved] : small) {
      if (moved.calls > 0) apart[key.bucket] += moved;
    }
    for (const auto& [bucket, moved] : apart) put({group.ranks, bucket, moved});
    for (auto& [bucket, row] : others) {
      row.ranks = group.ranks;
      row.has_limit = false;
      row.within = !budget_.others_fail || is_copy(bucket) || is_setup(bucket);
      if (!row.within) row.limit.calls = row.limit.bytes = {0, 0};
      put(std::move(row));
    }
  }

 private:
  Row row_of(const Group& group, const Limit& limit) const {
    Row row{.ranks = group.ranks, .limit = limit};
    for (const auto& [key, moved] : group.figures) {
      if (is_of(key, limit)) add_to(row, key, moved);
    }
    row.limit.bytes = bytes_of(row.moved.calls, limit.calls, limit.bytes, limit.each);
    row.either = either_of(limit);
    row.within = limit.calls.holds(row.moved.calls) && row.limit.bytes.holds(row.moved.bytes);
    return row;
  }
  bool is_of(const Key& key, const Limit& limit) const {
    return bucket_of(key) == limit.bucket && !is_small(key) &&
           (limit.function.empty() || key.function == limit.function) &&
           (limit.dtype.empty() || key.dtype == limit.dtype);
  }
  bool is_small(const Key& key) const {
    return budget::is_small(key.bucket, key.bytes_class, model_);
  }
  Figures small_of(const Figures& figures) const {
    Figures small;
    for (const auto& [key, moved] : figures) {
      if (is_small(key)) small[key] = moved;
    }
    return small;
  }
  // Gradients of small parameters, and calls that have become a little smaller than in the budget,
  // are among the small ones. A budget of a run has its own small calls, which are not taken.
  void fill_up(Row& row, Figures& small) {
    if (is_copy(row.limit.bucket) || row.limit.each.most != 0) return;
    for (const auto& [key, moved] : small) {
      const bool same = bucket_of(key) == row.limit.bucket && moved.calls > 0 &&
                        (row.limit.function.empty() || key.function == row.limit.function);
      if (same) row.small[key] = moved;
    }
    const std::string dtype = dtype_of(row.limit);
    Figures of_dtype = row.small;
    std::erase_if(of_dtype,
                  [&](const auto& s) { return !dtype.empty() && s.first.dtype != dtype; });
    const auto filled = fill(of_dtype, row.moved, row.limit.calls, row.limit.bytes,
                             more_than_budget(row.limit.bucket, small));
    if (!filled) return;
    row.within = true;
    for (const auto& [key, moved] : *filled) {
      small[key] -= moved;
      row.filled += moved;
      add_to(row, key, moved);
    }
  }
  std::string dtype_of(const Limit& limit) const {
    if (!limit.dtype.empty() || !budget_.model) return limit.dtype;
    const bool gathers = limit.bucket == Bucket::ALLGATHER;
    return gathers ? model_.dtype : model_.reduce_dtype;
  }
  double more_than_budget(Bucket bucket, const Figures& small) const {
    if (!budget_.small) return std::numeric_limits<double>::infinity();
    return of_bucket(small, bucket).calls - most_small(bucket).calls;
  }
  static Moved of_bucket(const Figures& small, Bucket bucket) {
    Moved all;
    for (const auto& [key, moved] : small) {
      if (key.bucket == bucket) all += moved;
    }
    return all;
  }
  SmallLimit most_small(Bucket bucket) const {
    const auto most = budget_.small->find(bucket);
    return most == budget_.small->end() ? SmallLimit{} : most->second;
  }
  // Calls that have become a little larger than in the budget are not small any more: for each of
  // these the budget has a small one more than there is.
  void make_room(Row& row, const Figures& small) {
    Range& calls = row.limit.calls;
    Range& bytes = row.limit.bytes;
    if (!budget_.small || is_copy(row.limit.bucket) || row.moved.calls <= calls.most) return;
    const Moved now = of_bucket(small, row.limit.bucket);
    const SmallLimit most = most_small(row.limit.bucket);
    Moved& used = grown_[row.limit.bucket];
    const double grown = row.moved.calls - calls.most;
    const double more = std::max(0.0, row.moved.bytes - bytes.most);
    if (used.calls + grown > most.calls - now.calls) return;
    if (used.bytes + more > most.bytes - now.bytes || row.moved.bytes < bytes.least) return;
    used += {grown, more, 0};
    calls.most += grown;
    bytes.most += more;
    row.grown = grown;
    row.within = true;
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
  // A size as one int64 of each rank, and an object of bytes: as often.
  static Objects objects_of(const Figures& figures) {
    double sizes = 0;
    double objects = 0;
    Objects found;
    for (const auto& [key, moved] : figures) {
      if (key.bucket != Bucket::ALLGATHER) continue;
      const auto ranks = static_cast<double>(key.nranks);
      if (key.dtype == "int64" && moved.elements == moved.calls * ranks) sizes += moved.calls;
      if (key.dtype != "uint8") continue;
      objects += moved.calls;
      if (budget::is_small(key.bucket, key.bytes_class, {})) continue;
      found.calls += moved.calls;
      found.bytes += moved.bytes;
    }
    found.small = sizes + objects - found.calls;
    return sizes == objects ? found : Objects{};
  }
  // A run's budget says how many there may be. Those of a ledger have setup in them.
  void put(Small small) {
    if (budget_.small && small.bucket <= Bucket::OTHER_COLL &&
        measured_.from != Measured::From::ledger) {
      small.most = most_small(small.bucket).calls;
    }
    if (small.bucket == Bucket::ALLGATHER) small.of_objects = objects_.small;
    if (budget_.others_fail && !is_copy(small.bucket)) to_.within = to_.within && small.within();
    to_.small.push_back(std::move(small));
  }
  void put(Row row) {
    row.objects = objects_;
    to_.within = to_.within && row.within;
    to_.rows.push_back(std::move(row));
  }

  const Measured& measured_;
  const Budget& budget_;
  Model model_;
  bool either_;
  Objects objects_;  // of the group that is looked at
  std::map<Bucket, Moved> grown_;
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

Budget of_run(const Measured& measured, double tolerance) {
  using Name = std::tuple<Bucket, std::string, std::string>;
  const std::vector<Group>& groups = measured.groups;
  struct Limited {
    std::vector<Moved> groups;
    double usual = 0;  // calls of a group, the most
  };
  std::map<Name, Limited> all;
  std::map<Bucket, SmallLimit> small;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto limited = [&](const Key& key) -> Limited& {
      Limited& to = all[{key.bucket, key.function, key.dtype}];
      to.groups.resize(groups.size());
      return to;
    };
    const auto counts = [](const Key& key) {
      return key.bucket <= Bucket::OTHER_COLL && !is_small(key.bucket, key.bytes_class, {});
    };
    std::map<Bucket, Moved> small_here;
    for (const auto& [key, moved] : groups[g].often) {
      if (is_small(key.bucket, key.bytes_class, {})) small_here[key.bucket] += moved;
      if (counts(key) && is_copy(key.bucket)) limited(key).groups[g] += moved;
    }
    for (const auto& [bucket, moved] : small_here) {
      SmallLimit& most = small[bucket];
      most.calls = std::max(most.calls, moved.calls);
      most.bytes = std::max(most.bytes, moved.bytes * (1 + tolerance));
    }
    std::map<Name, double> usual;
    for (const auto& [key, moved] : groups[g].figures) {
      if (!counts(key)) continue;
      Limited& to = limited(key);
      if (!is_copy(key.bucket)) to.groups[g] += moved;
      double& calls = usual[{key.bucket, key.function, key.dtype}];
      to.usual = std::max(to.usual, calls += moved.calls);
    }
  }
  Budget budget{.nranks = measured.nranks, .kinds = known_kinds(measured)};
  if (measured.from != Measured::From::ledger) budget.small = std::move(small);
  for (const auto& [name, of] : all) {
    const auto range = [&of = of.groups](double Moved::*figure, double share) {
      const auto [least, most] = std::ranges::minmax(of, {}, figure);
      return Range{least.*figure * (1 - share), most.*figure * (1 + share)};
    };
    const auto& [bucket, function, dtype] = name;
    Limit limit{bucket, function, dtype, range(&Moved::calls, 0), range(&Moved::bytes, tolerance)};
    // Copies are not the same in each step, as batches, evaluations and checkpoints make them.
    if (is_copy(bucket)) {
      limit.calls = {};
      limit.bytes.least = 0;
      limit.usual = of.usual;
    }
    budget.limits.push_back(limit);
  }
  return budget;
}

Compared compare(const Measured& measured, const Budget& budget) {
  Compared c;
  Comparer comparer(measured, budget, c);
  for (const Group& group : measured.groups) comparer.add(group);
  c.sentences = explain(c.rows, budget);
  say_small_calls(c, budget, measured.groups.size() > 1);
  const bool other_job = budget.nranks != 0 && budget.nranks != measured.nranks;
  c.others = other_steps(measured, budget.kinds, other_job);
  if (budget.others_fail && !c.others.never.empty()) {
    c.within = false;
    c.sentences.insert(c.sentences.end(), c.others.never.begin(), c.others.never.end());
  }
  if (measured.groups.size() > 1) {
    Members others;
    for (std::size_t g = 1; g < measured.groups.size(); ++g) others.add(measured.groups[g].ranks);
    c.notes.push_back(fmt::format("{} moved something else than {}", others.names(),
                                  measured.groups[0].ranks.names()));
  }
  return c;
}

}  // namespace tprof::budget
