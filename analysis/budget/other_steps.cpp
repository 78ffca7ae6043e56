#include "budget/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "text/text.h"

namespace tprof::budget {
namespace {

using InRun = OtherSteps::InRun;
using Steps = std::vector<std::int64_t>;

// Sizes of an evaluation's gathers vary a little, also across the bound of a class.
bool has_size(const KnownKind& known, std::int64_t bytes_class) {
  const auto from = known.classes.lower_bound(bytes_class - 1);
  return from != known.classes.end() && *from <= bytes_class + 1;
}

bool is_known(const KnownKinds& kinds, const Key& key, bool any_size) {
  const auto known = kinds.find(kind_of(key));
  if (known == kinds.end()) return false;
  return any_size || known->second.classes.empty() || has_size(known->second, key.bytes_class);
}

// Tells of a kind that no step of the budget's run makes. `sizes`: it makes some of other sizes.
std::string sentence(const Key& kind, const std::map<Moved, Steps>& all, bool sizes) {
  Steps steps;
  for (const auto& [more, of] : all) steps.insert(steps.end(), of.begin(), of.end());
  std::ranges::sort(steps);
  const Moved& most = all.rbegin()->first;
  return fmt::format(
      "{} {} {}{:.6g} {} of {} more, of {}{}, {} that the budget is of", steps_text(steps),
      steps.size() == 1 ? "has" : "have", all.size() > 1 ? "up to " : "", most.calls, kind.function,
      kind.dtype, text::bytes(static_cast<std::uint64_t>(most.bytes)),
      most.calls == 1 ? "" : " together",
      sizes ? "a size that it has in no step of the run" : "which is in no step of the run");
}

}  // namespace

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

Others other_steps(const Measured& measured, const std::optional<KnownKinds>& known,
                   bool any_size) {
  const auto in_run = [&](const Key& kind, const Moved& more) -> std::optional<InRun> {
    if (!known) return std::nullopt;
    const auto of = known->find(kind);
    const bool holds = of != known->end() && (more.calls <= 0 || of->second.more.holds(more.calls));
    return holds ? InRun::yes : InRun::other_number;
  };
  std::map<std::pair<Key, std::optional<InRun>>, std::map<Moved, Steps>> all;
  std::map<std::int64_t, Figures> unlike;
  for (const auto& [step, figures] : measured.other_steps) {
    Figures never;
    Figures others;
    for (const auto& [key, moved] : figures) {
      if (!tells_steps_apart(key)) continue;
      const bool fresh = known && moved.calls > 0 && !is_known(*known, key, any_size);
      (fresh ? never : others)[kind_of(key)] += moved;
    }
    std::erase_if(others, [](const auto& o) {
      const Moved& more = o.second;
      return more.calls < 0 || (more.calls == 0 && more.bytes <= 0);
    });
    bool is_unlike = !never.empty();
    for (const auto& [kind, more] : never) all[{kind, InRun::never}][more].push_back(step);
    for (const auto& [kind, more] : others) {
      const std::optional<InRun> in = in_run(kind, more);
      all[{kind, in}][more].push_back(step);
      is_unlike = is_unlike || in != InRun::yes;
    }
    if (!is_unlike) continue;
    for (const auto& [key, moved] : figures) {
      const Key kind = kind_of(key);
      const bool is_more = never.contains(kind) || others.contains(kind);
      if (tells_steps_apart(key) && is_more) unlike[step][key] = moved;
    }
  }
  Others o{
      .run_known = known.has_value(), .unlike = unlike.size(), .text = differences_text(unlike)};
  for (const auto& [what, by_moved] : all) {
    const auto& [kind, in] = what;
    if (in == InRun::never) o.never.push_back(sentence(kind, by_moved, known->contains(kind)));
    for (const auto& [moved, steps] : by_moved) o.all.push_back({steps, kind, moved, in});
  }
  return o;
}

}  // namespace tprof::budget
