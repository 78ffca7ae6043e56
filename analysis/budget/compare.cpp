#include "budget/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "text/text.h"

namespace tprof::budget {
namespace {

bool is_zero(Way way) {
  return way == Way::zero1 || way == Way::zero2;
}

// The bytes of that of the expected numbers of calls which comes nearest: a call more of the one
// may have as many calls as the other.
Range nearest(const Limit& limit, double moved) {
  const auto away = [&](const Range& r) {
    return std::max({r.least - moved, moved - r.most, 0.0});
  };
  const Range least = limit.bytes_with(limit.calls.least);
  const Range most = limit.bytes_with(limit.calls.most);
  return away(least) < away(most) ? least : most;
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
    const std::size_t first = to_.rows.size();
    Figures rest = group.figures;  // of no limit
    for (const Limit& limit : budget_.limits) {
      Row row = row_of(group, limit);
      // Calls in the model's type may be all that was expected: then the rest is beside them.
      if (!row.within) {
        Limit of_dtype = limit;
        of_dtype.dtype = dtype_of(limit);
        if (Row alone = row_of(group, of_dtype); alone.within) row = std::move(alone);
      }
      std::erase_if(rest, [&](const auto& f) { return is_of(f.first, row.limit); });
      if (!row.within && !is_copy(limit.bucket) && limit.each.most == 0) {
        row.small = small_of(group, row);
        row.within = row.with_small =
            within_with_small(row.limit.calls, row.bytes, row.moved, row.small,
                              most_small(limit.bucket).value_or(SmallLimit{}));
      }
      if (!row.within && limit.each.most != 0) row.bytes = nearest(limit, row.moved.bytes);
      put(std::move(row));
    }
    std::map<Bucket, Row> others;
    std::map<Bucket, Moved> small;
    for (const auto& [key, moved] : rest) {
      if (is_small(key)) {
        small[key.bucket] += moved;
      } else if (key.bucket <= Bucket::OTHER_COLL) {
        add_to(others[key.bucket], key, moved);
      }
    }
    for (auto& [bucket, row] : others) {
      row.ranks = group.ranks;
      row.limit.bucket = bucket;
      row.has_limit = false;
      row.within = !budget_.others_fail || is_copy(bucket) || is_setup(bucket);
      if (!row.within) row.limit.calls = row.bytes = {0, 0};
      put(std::move(row));
    }
    const Objects objects = objects_of(group.figures);
    for (const auto& [bucket, moved] : small) {
      const bool in_row = std::any_of(
          to_.rows.begin() + static_cast<std::ptrdiff_t>(first), to_.rows.end(),
          [&b = bucket](const Row& row) { return row.with_small && row.limit.bucket == b; });
      put({.ranks = group.ranks,
           .bucket = bucket,
           .moved = moved,
           .most = in_row ? std::nullopt : most_calls(bucket),
           .of_objects = bucket == Bucket::ALLGATHER ? objects.small : 0});
    }
    for (const std::string& said : explain(std::span(to_.rows).subspan(first), objects, budget_)) {
      if (std::ranges::find(to_.sentences, said) == to_.sentences.end())
        to_.sentences.push_back(said);
    }
  }

 private:
  Row row_of(const Group& group, const Limit& limit) const {
    Row row{.ranks = group.ranks, .limit = limit};
    for (const auto& [key, moved] : group.figures) {
      if (is_of(key, limit)) add_to(row, key, moved);
    }
    row.bytes = limit.bytes_with(row.moved.calls);
    row.within = limit.holds(row.moved.calls, row.moved.bytes);
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
  // A budget of a run has its own small calls, by bucket; gradients are of one type.
  Moved small_of(const Group& group, const Row& row) const {
    std::vector<std::string> dtypes = row.dtypes;
    if (dtypes.empty()) dtypes.push_back(dtype_of(row.limit));
    Moved all;
    for (const auto& [key, moved] : group.figures) {
      if (bucket_of(key) != row.limit.bucket || !is_small(key)) continue;
      if (budget_.small || std::ranges::count(dtypes, key.dtype) != 0) all += moved;
    }
    return all;
  }
  std::string dtype_of(const Limit& limit) const {
    if (!limit.dtype.empty() || !budget_.model) return limit.dtype;
    const bool gathers = limit.bucket == Bucket::ALLGATHER;
    return gathers ? model_.dtype : model_.reduce_dtype;
  }
  // Absent: any number.
  std::optional<SmallLimit> most_small(Bucket bucket) const {
    if (!budget_.small) return std::nullopt;
    const auto most = budget_.small->find(bucket);
    return most == budget_.small->end() ? SmallLimit{} : most->second;
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
  // A run's budget says how many small ones there may be. Those of a ledger have setup in them.
  std::optional<double> most_calls(Bucket bucket) const {
    const auto most = most_small(bucket);
    const bool counted = bucket <= Bucket::OTHER_COLL && measured_.from != Measured::From::ledger;
    return most && counted ? std::optional(most->calls) : std::nullopt;
  }
  void put(Small small) {
    if (budget_.others_fail && !is_copy(small.bucket)) to_.within = to_.within && small.within();
    to_.small.push_back(std::move(small));
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

// Tells of small calls that may be a part of a row.
void say_with_small(Compared& c, const Budget& budget) {
  std::set<std::string> said;
  for (const Row& row : c.rows) {
    const std::string bucket(bucket_name(row.limit.bucket));
    const double n = row.small.calls;
    if (row.with_small && !budget.model) {
      said.insert(bucket +
                  ": what differs is taken for calls that are small here or in the budget's run");
      continue;
    }
    // Those of an element each are norms and losses.
    const bool may_be = row.with_small || row.small.bytes >= 64 * n;
    if (n == 0 || !may_be || row.moved.bytes >= row.bytes.least) continue;
    const std::string calls =
        fmt::format("{} of {}", calls_text(n, "small call"), bytes_text(row.small.bytes));
    said.insert(row.with_small
                    ? fmt::format("{}: what is missing is taken for gradients of small parameters, "
                                  "among {}",
                                  bucket, calls)
                    : fmt::format("{}: {} may be gradients of small parameters too, and {} less "
                                  "than what is missing",
                                  bucket, calls, n == 1 ? "is" : "are"));
  }
  c.notes.insert(c.notes.end(), said.begin(), said.end());
}

// Tells of more small calls than the budget has, by bucket: the ranks that make most of them. The
// sizes of objects are told with these.
void say_small(Compared& c) {
  const bool objects = std::ranges::any_of(
      c.sentences, [](const std::string& s) { return s.ends_with("all_gather_object"); });
  const auto of_objects = [](const Small& small) {
    return small.of_objects != 0 && small.moved.calls - *small.most == small.of_objects;
  };
  std::map<Bucket, const Small*> most;
  for (const Small& small : c.small) {
    if (small.within() || (objects && of_objects(small))) continue;
    const Small*& known = most[small.bucket];
    if (known == nullptr || small.moved.calls > known->moved.calls) known = &small;
  }
  for (const auto& [bucket, small] : most) {
    (is_copy(bucket) ? c.notes : c.sentences)
        .push_back(fmt::format("{}: {} a step (each of less than {}), where the budget has {}{}",
                               bucket_name(bucket), calls_text(small->moved.calls, "small call"),
                               bucket == Bucket::ALLREDUCE ? "16 KiB" : "64 B",
                               *small->most == 0 ? "none" : fmt::format("{:.6g}", *small->most),
                               of_objects(*small) ? ", which looks like all_gather_object" : ""));
  }
}

}  // namespace

std::string bytes_text(double n) {
  return text::bytes(static_cast<std::uint64_t>(std::llround(n)));
}

std::string calls_text(double n, const std::string& what) {
  return fmt::format("{:.6g} {}{}", n, what, n == 1 ? "" : "s");
}

Budget of_model(const Model& model) {
  return {.limits = expected(model), .model = model};
}

bool has_copies(const Budget& budget) {
  return std::ranges::any_of(budget.limits, [](const Limit& l) { return is_copy(l.bucket); });
}

bool within_with_small(const Range& calls, const Range& bytes, const Moved& moved,
                       const Moved& small, const SmallLimit& most) {
  const double more = small.calls - most.calls;
  const double gone = more < 0 ? std::max(0.0, most.bytes - small.bytes) : 0;
  const Range may_be_calls{moved.calls + std::min(more, 0.0), moved.calls + std::max(more, 0.0)};
  const Range may_be_bytes{moved.bytes - gone, moved.bytes + (more > 0 ? small.bytes : 0)};
  return calls.meets(may_be_calls) && bytes.meets(may_be_bytes);
}

Budget of_run(const Measured& measured, double tolerance) {
  const std::vector<Group>& groups = measured.groups;
  struct Limited {
    std::vector<Moved> groups;
    double usual = 0;  // calls of a group, the most
  };
  std::map<Key, Limited> all;
  std::map<Bucket, SmallLimit> small;
  const auto is_large = [](const Key& key) {
    return key.bucket <= Bucket::OTHER_COLL && !is_small(key.bucket, key.bytes_class, {});
  };
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto limited = [&](const Key& kind) -> Limited& {
      Limited& to = all[kind];
      to.groups.resize(groups.size());
      return to;
    };
    std::map<Bucket, Moved> small_here;
    for (const auto& [key, moved] : groups[g].often) {
      if (is_small(key.bucket, key.bytes_class, {})) small_here[key.bucket] += moved;
    }
    for (const auto& [bucket, moved] : small_here) {
      SmallLimit& most = small[bucket];
      most.calls = std::max(most.calls, moved.calls);
      most.bytes = std::max(most.bytes, moved.bytes * (1 + tolerance));
    }
    for (const auto& [kind, moved] : by_kind(groups[g].often, is_large)) {
      if (is_copy(kind.bucket)) limited(kind).groups[g] = moved;
    }
    for (const auto& [kind, moved] : by_kind(groups[g].figures, is_large)) {
      Limited& to = limited(kind);
      if (!is_copy(kind.bucket)) to.groups[g] = moved;
      to.usual = std::max(to.usual, moved.calls);
    }
  }
  Budget budget{.nranks = measured.nranks, .kinds = known_kinds(measured)};
  if (measured.from != Measured::From::ledger) budget.small = std::move(small);
  for (const auto& [kind, of] : all) {
    const auto range = [&of = of.groups](double Moved::*figure, double share) {
      const auto [least, most] = std::ranges::minmax(of, {}, figure);
      return Range{least.*figure * (1 - share), most.*figure * (1 + share)};
    };
    Limit limit{kind.bucket, kind.function, kind.dtype, range(&Moved::calls, 0),
                range(&Moved::bytes, tolerance)};
    // Copies are not the same in each step, as batches, evaluations and checkpoints make them.
    if (is_copy(kind.bucket)) {
      limit.calls = {};
      limit.bytes.least = 0;
      limit.usual = of.usual;
    }
    budget.limits.push_back(limit);
  }
  return budget;
}

Compared compare(const Measured& measured, const Budget& budget) {
  Compared c{.notes = measured.notes};
  Comparer comparer(measured, budget, c);
  for (const Group& group : measured.groups) comparer.add(group);
  say_small(c);
  say_with_small(c, budget);
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
  if (other_job) {
    c.notes.push_back(fmt::format(
        "the budget is of a job of {} ranks and this one has {}: what a rank moves in a step may "
        "differ for that alone",
        text::thousands(static_cast<std::uint64_t>(budget.nranks)),
        text::thousands(static_cast<std::uint64_t>(measured.nranks))));
  }
  return c;
}

}  // namespace tprof::budget
