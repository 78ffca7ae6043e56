#include "budget/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "text/text.h"

namespace tprof::budget {
namespace {

// Returns the bytes for the expected number of calls whose bytes are nearest.
Range nearest(const Limit& limit, double moved) {
  const auto away = [&](const Range& r) {
    return std::max({r.least - moved, moved - r.most, 0.0});
  };
  const Range least = limit.bytes_with(limit.calls.least);
  const Range most = limit.bytes_with(limit.calls.most);
  return away(least) < away(most) ? least : most;
}

// A group's calls of one kind.
struct Calls {
  Bucket bucket;  // whose limit they are compared with
  const Key& key;
  const Moved& moved;
  bool small;
  bool of_limit = false;
};

bool is_of(const Calls& c, const Limit& limit) {
  return c.bucket == limit.bucket && !c.small &&
         (limit.function.empty() || c.key.name == limit.function) &&
         (limit.dtype.empty() || c.key.dtype == limit.dtype);
}

void add(Row& row, const Calls& c) {
  row.moved += c.moved;
  if (std::ranges::count(row.dtypes, c.key.dtype.str()) == 0) row.dtypes.push_back(c.key.dtype);
}

Row row_of(const std::vector<Calls>& all, const Limit& limit) {
  Row row{.limit = limit};
  for (const Calls& c : all) {
    if (is_of(c, limit)) add(row, c);
  }
  row.bytes = limit.bytes_with(row.moved.calls);
  row.within = limit.holds(row.moved.calls, row.moved.bytes);
  return row;
}

// Returns how many small calls a budget allows. Absent: any number.
std::optional<SmallLimit> most_small(const Budget& budget, Bucket bucket) {
  if (!budget.small) return std::nullopt;
  const auto most = budget.small->find(bucket);
  return most == budget.small->end() ? SmallLimit{} : most->second;
}

Row compared(const std::vector<Calls>& all, const Limit& limit, const Budget& budget) {
  Row row = row_of(all, limit);
  if (row.within) return row;
  std::string dtype = limit.dtype;
  if (dtype.empty() && budget.model) {
    const bool gathers = limit.bucket == Bucket::ALLGATHER;
    dtype = gathers ? budget.model->dtype : budget.model->reduce_dtype;
  }
  // If the calls in the model's type are all that was expected, the others are extra.
  Limit of_dtype = limit;
  of_dtype.dtype = dtype;
  if (Row alone = row_of(all, of_dtype); alone.within) return alone;
  if (limit.each.most != 0) {
    row.bytes = nearest(limit, row.moved.bytes);
  } else if (!is_copy(limit.bucket)) {
    // A budget of a run has its own small calls by bucket. Gradients have one type.
    std::vector<std::string> dtypes = row.dtypes;
    if (dtypes.empty()) dtypes.push_back(dtype);
    for (const Calls& c : all) {
      const bool may_be = budget.small || std::ranges::count(dtypes, c.key.dtype.str()) != 0;
      if (c.bucket == limit.bucket && c.small && may_be) row.small += c.moved;
    }
    row.within = row.with_small =
        within_with_small(limit.calls, row.bytes, row.moved, row.small,
                          most_small(budget, limit.bucket).value_or(SmallLimit{}));
  }
  return row;
}

void compare_group(const Group& group, bool of_ledger, const Budget& budget, Compared& to) {
  const Model model = budget.model.value_or(Model{});
  // DeepSpeed reduces to a part's owner (ncclReduce) or to all ranks, depending on a setting.
  const bool either =
      std::ranges::find_first_of(model.ways, std::initializer_list{Way::zero1, Way::zero2}) !=
      model.ways.end();
  std::vector<Calls> all;
  for (const auto& [key, moved] : group.figures) {
    const bool reduced = either && key.bucket == Bucket::REDUCE;
    all.push_back({reduced ? Bucket::ALLREDUCE : key.bucket, key, moved,
                   is_small(key.bucket, key.bytes_class, model)});
  }
  std::vector<Row> rows;
  for (const Limit& limit : budget.limits) {
    const Row& row = rows.emplace_back(compared(all, limit, budget));
    for (Calls& c : all) c.of_limit = c.of_limit || is_of(c, row.limit);
  }
  std::map<Bucket, Row> others;
  std::map<Bucket, Moved> small;
  for (const Calls& c : all) {
    if (c.small) {
      small[c.key.bucket] += c.moved;
    } else if (!c.of_limit && c.key.bucket <= Bucket::OTHER_COLL) {
      add(others[c.key.bucket], c);
    }
  }
  for (auto& [bucket, row] : others) {
    row.limit.bucket = bucket;
    row.has_limit = false;
    // Frameworks broadcast parameters when they start.
    const bool setup = of_ledger && bucket == Bucket::BROADCAST;
    row.within = !budget.others_fail || is_copy(bucket) || setup;
    if (!row.within) row.limit.calls = row.bytes = {0, 0};
    rows.push_back(row);
  }
  for (const auto& [bucket, moved] : small) {
    const bool in_row = std::ranges::any_of(
        rows, [&b = bucket](const Row& row) { return row.with_small && row.limit.bucket == b; });
    Small& of = to.small.emplace_back(Small{group.ranks, bucket, moved});
    // A ledger's calls include setup.
    const auto most = most_small(budget, bucket);
    if (most && !in_row && !of_ledger && bucket <= Bucket::OTHER_COLL) of.most = most->calls;
    if (budget.others_fail && !is_copy(bucket)) to.within = to.within && of.within();
  }
  for (const std::string& said : explain(rows, budget)) {
    if (std::ranges::count(to.sentences, said) == 0) to.sentences.push_back(said);
  }
  for (Row& row : rows) {
    row.ranks = group.ranks;
    to.within = to.within && row.within;
    to.rows.push_back(std::move(row));
  }
}

// Notes small calls that may belong to a row.
void say_with_small(Compared& c, const Budget& budget) {
  std::set<std::string> said;
  for (const Row& row : c.rows) {
    const std::string bucket(bucket_name(row.limit.bucket));
    const double n = row.small.calls;
    if (row.with_small && !budget.model) {
      said.insert(
          bucket +
          ": the difference is assumed to be calls that are small here or in the budget's run");
      continue;
    }
    // Calls of one element are norms and losses.
    const bool may_be = row.with_small || row.small.bytes >= 64 * n;
    if (n == 0 || !may_be || row.moved.bytes >= row.bytes.least) continue;
    const std::string calls =
        fmt::format("{} of {}", calls_text(n, "small call"), bytes_text(row.small.bytes));
    said.insert(
        row.with_small
            ? fmt::format(
                  "{}: the missing part is assumed to be gradients of small parameters, among {}",
                  bucket, calls)
            : fmt::format("{}: {} may also be gradients of small parameters, but {} less than the "
                          "missing part",
                          bucket, calls, n == 1 ? "is" : "are"));
  }
  c.notes.insert(c.notes.end(), said.begin(), said.end());
}

// Reports more small calls than the budget has, by bucket, with the ranks that make most of them.
void say_small(Compared& c) {
  std::map<Bucket, const Small*> most;
  for (const Small& small : c.small) {
    if (small.within()) continue;
    const Small*& known = most[small.bucket];
    if (known == nullptr || small.moved.calls > known->moved.calls) known = &small;
  }
  for (const auto& [bucket, small] : most) {
    (is_copy(bucket) ? c.notes : c.sentences)
        .push_back(fmt::format("{}: {} per step (of less than {} each), but the budget has {}",
                               bucket_name(bucket), calls_text(small->moved.calls, "small call"),
                               bucket == Bucket::ALLREDUCE ? "16 KiB" : "64 B",
                               *small->most == 0 ? "none" : fmt::format("{:.6g}", *small->most)));
  }
}

using Steps = std::vector<std::int64_t>;

// Sizes of an evaluation's gathers vary a little, and may cross the border of a class.
bool has_size(const KnownKind& known, std::int64_t bytes_class) {
  const auto from = known.classes.lower_bound(bytes_class - 1);
  return from != known.classes.end() && *from <= bytes_class + 1;
}

bool is_known(const KnownKinds& kinds, const Key& key, bool any_size) {
  const auto known = kinds.find(kind_of(key));
  if (known == kinds.end()) return false;
  return any_size || known->second.classes.empty() || has_size(known->second, key.bytes_class);
}

// "steps 4,11 have 2 ncclAllGather of float32 more, of 1.00 MiB together"
std::string more_text(const Key& kind, const std::map<Moved, Steps>& all) {
  Steps steps;
  for (const auto& [more, of] : all) steps.insert(steps.end(), of.begin(), of.end());
  std::ranges::sort(steps);
  const Moved& most = all.rbegin()->first;
  const std::string what = steps_have(steps) + (all.size() > 1 ? " up to " : " ");
  const std::string name = fmt::format("{} of {}", kind.name, kind.dtype);
  if (most.calls == 0) return fmt::format("{}{} more in {}", what, bytes_text(most.bytes), name);
  return fmt::format("{}{:.6g} {} more, of {}{}", what, most.calls, name,
                     bytes_text(std::max(most.bytes, 0.0)), most.calls == 1 ? "" : " together");
}

// Absent: no step is usual, or calls are not known by step.
std::optional<KnownKinds> known_kinds(const Measured& measured) {
  if (!measured.usual) return std::nullopt;
  KnownKinds known;
  const auto add_sizes = [&known](const Figures& figures) {
    for (const auto& [key, moved] : figures) {
      if (tells_steps_apart(key) && moved.calls > 0)
        known[kind_of(key)].classes.insert(key.bytes_class);
    }
  };
  for (const Group& group : measured.groups) add_sizes(group.figures);
  for (const auto* steps : {&measured.setup, &measured.other_steps}) {
    for (const auto& [step, figures] : *steps) {
      add_sizes(figures);
      for (const auto& [kind, more] : by_kind(figures, tells_steps_apart)) {
        if (more.calls <= 0) continue;
        Range& range = known[kind].more;
        range.least = range.most == 0 ? more.calls : std::min(range.least, more.calls);
        range.most = std::max(range.most, more.calls);
      }
    }
  }
  return known;
}

// Ignores setup. `any_size`: sizes are not compared, as they differ in other jobs.
void compare_other_steps(const Measured& measured, const Budget& budget, bool any_size,
                         Compared& to) {
  constexpr std::size_t kMostTold = 4;
  const std::optional<KnownKinds>& known = budget.kinds;
  // By kind, and by its OtherSteps::in_run.
  std::map<std::pair<Key, std::string>, std::map<Moved, Steps>> all;
  std::set<std::int64_t> unlike;
  for (const auto& [step, figures] : measured.other_steps) {
    std::map<std::pair<Key, bool>, Moved> more;  // true: sizes that no step of the budget's run has
    for (const auto& [key, moved] : figures) {
      if (!tells_steps_apart(key)) continue;
      const bool is_new = known && moved.calls > 0 && !is_known(*known, key, any_size);
      more[{kind_of(key), is_new}] += moved;
    }
    for (const auto& [what, moved] : more) {
      const auto& [kind, is_new] = what;
      if (moved.calls < 0 || (moved.calls == 0 && moved.bytes <= 0)) continue;
      const auto of = known ? known->find(kind) : KnownKinds::const_iterator();
      const bool as_known =
          known && of != known->end() && (moved.calls <= 0 || of->second.more.holds(moved.calls));
      const char* in_run = !known ? "" : is_new ? "never" : as_known ? "yes" : "other number";
      all[{kind, in_run}][moved].push_back(step);
      if (is_new || !as_known) unlike.insert(step);
    }
  }
  to.unlike_steps = unlike.size();
  std::size_t told = 0;
  for (const auto& [what, by_moved] : all) {
    const auto& [kind, in_run] = what;
    const std::string text = more_text(kind, by_moved);
    if (budget.others_fail && in_run == "never") {
      to.within = false;
      to.sentences.push_back(fmt::format("{}, {} that the budget is from", text,
                                         known->contains(kind)
                                             ? "a size that is in no step of the run"
                                             : "which is in no step of the run"));
    }
    if (in_run != "yes" && told++ < kMostTold) {
      to.unlike_text += (to.unlike_text.empty() ? "" : "; ") + text;
    }
    for (const auto& [moved, steps] : by_moved) {
      to.other_steps.push_back({steps, kind, moved, in_run});
    }
  }
  if (told > kMostTold) to.unlike_text += "; others have other calls";
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
    double usual = 0;  // the most calls of a group
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
    Limit limit{kind.bucket, kind.name, kind.dtype, range(&Moved::calls, 0),
                range(&Moved::bytes, tolerance)};
    // Copies differ between steps, due to batches, evaluations and checkpoints.
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
  const bool of_ledger = measured.from == Measured::From::ledger;
  for (const Group& group : measured.groups) compare_group(group, of_ledger, budget, c);
  say_small(c);
  say_with_small(c, budget);
  const bool other_job = budget.nranks != 0 && budget.nranks != measured.nranks;
  compare_other_steps(measured, budget, other_job, c);
  if (measured.groups.size() > 1) {
    Members others;
    for (std::size_t g = 1; g < measured.groups.size(); ++g) others.add(measured.groups[g].ranks);
    c.notes.push_back(fmt::format("{} moved other amounts than {}", others.names(),
                                  measured.groups[0].ranks.names()));
  }
  if (other_job) {
    c.notes.push_back(
        fmt::format("the budget is for {} ranks and this job has {}: that alone may change what a "
                    "rank moves in a step",
                    text::thousands(static_cast<std::uint64_t>(budget.nranks)),
                    text::thousands(static_cast<std::uint64_t>(measured.nranks))));
  }
  return c;
}

}  // namespace tprof::budget
