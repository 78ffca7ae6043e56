#include "budget/say_small.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "text/text.h"

namespace tprof::budget {
namespace {

// Tells of small calls that are in a figure.
void say_filled(Compared& c, const Budget& budget, bool several) {
  std::map<std::pair<Bucket, Moved>, Members> all;
  for (const Row& row : c.rows) {
    if (row.filled.calls == 0) continue;
    all[{row.limit.bucket, row.filled}].add(row.ranks);
  }
  for (const auto& [what, ranks] : all) {
    const auto& [bucket, filled] = what;
    const bool one = filled.calls == 1;
    const char* as = !budget.model                 ? "what the budget has"
                     : bucket == Bucket::ALLGATHER ? "gathers of small parameters"
                                                   : "gradients of small parameters";
    c.notes.push_back(fmt::format("{}: {:.6g} small {} of {}{} {} taken for {}",
                                  bucket_name(bucket), filled.calls, one ? "call" : "calls",
                                  bytes_text(filled.bytes), several ? " on " + ranks.names() : "",
                                  one ? "is" : "are", as));
  }
}

// Tells of calls that are in a figure, where the budget has them among the small ones.
void say_grown(Compared& c) {
  std::map<Bucket, double> most;
  for (const Row& row : c.rows) {
    double& calls = most[row.limit.bucket];
    calls = std::max(calls, row.grown);
  }
  for (const auto& [bucket, calls] : most) {
    if (calls == 0) continue;
    c.notes.push_back(fmt::format("{}: {:.6g} more {} taken for {} of the budget",
                                  bucket_name(bucket), calls, calls == 1 ? "call is" : "calls are",
                                  calls == 1 ? "a small one" : "small ones"));
  }
}

// Tells of small calls that may be gradients, where even with them some are missing. Those of an
// element each are norms and losses.
void say_too_few(Compared& c, const Budget& budget) {
  std::set<std::string> said;
  for (const Row& row : c.rows) {
    Moved small;
    for (const auto& [key, moved] : row.small) {
      if (std::ranges::find(row.dtypes, key.dtype) != row.dtypes.end()) small += moved;
    }
    const double missing = row.limit.bytes.least - row.moved.bytes;
    if (row.within || !budget.model || small.bytes >= missing || small.bytes < 64 * small.calls ||
        small.calls == 0) {
      continue;
    }
    said.insert(
        fmt::format("{}: {:.6g} small {} of {} may be gradients of small parameters too, "
                    "and {} less than what is missing",
                    bucket_name(row.limit.bucket), small.calls, small.calls == 1 ? "call" : "calls",
                    bytes_text(small.bytes), small.calls == 1 ? "is" : "are"));
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
        .push_back(fmt::format(
            "{}: {:.6g} small {} a step (each of less than {}), where the budget has {}{}",
            bucket_name(bucket), small->moved.calls, small->moved.calls == 1 ? "call" : "calls",
            bucket == Bucket::ALLREDUCE ? "16 KiB" : "64 B",
            *small->most == 0 ? "none" : fmt::format("{:.6g}", *small->most),
            of_objects(*small) ? ", which looks like all_gather_object" : ""));
  }
}

}  // namespace

void say_small_calls(Compared& c, const Budget& budget, bool several) {
  say_small(c);
  say_filled(c, budget, several);
  say_grown(c);
  say_too_few(c, budget);
}

}  // namespace tprof::budget
