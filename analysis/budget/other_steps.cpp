#include "budget/other_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "budget/measured.h"
#include "text/text.h"

namespace tprof::budget {
namespace {

using Steps = std::vector<std::int64_t>;

Kind kind_of(const Key& key) {
  return {key.bucket, key.function, key.dtype};
}

bool is_more(const Moved& m) {
  return m.calls > 0 || (m.calls == 0 && m.bytes > 0);
}

// Sizes of an evaluation's gathers vary a little, also across the bound of a class.
bool has_size(const KnownKind& known, std::int64_t bytes_class) {
  const auto from = known.classes.lower_bound(bytes_class - 1);
  return from != known.classes.end() && *from <= bytes_class + 1;
}

std::string text_of(const Steps& steps) {
  std::vector<std::size_t> places(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) places[i] = i;
  return steps_text(places, [&](std::size_t i) { return steps[i]; });
}

// Tells of a kind that no step of the budget's run makes. `sizes`: it makes some of other sizes.
std::string sentence(const Kind& kind, const std::map<Moved, Steps>& all, bool sizes) {
  Steps steps;
  Moved most;
  for (const auto& [more, of] : all) {
    steps.insert(steps.end(), of.begin(), of.end());
    most = std::max(most, more);
  }
  std::ranges::sort(steps);
  return fmt::format(
      "{} {} {}{:.6g} {} of {} more, of {}{}, {} that the budget is of", text_of(steps),
      steps.size() == 1 ? "has" : "have", all.size() > 1 ? "up to " : "", most.calls, kind.function,
      kind.dtype, text::bytes(static_cast<std::uint64_t>(most.bytes)),
      most.calls == 1 ? "" : " together",
      sizes ? "a size that it has in no step of the run" : "which is in no step of the run");
}

// Steps that make the same are told together.
std::string text_of(const std::map<std::int64_t, Figures>& unlike) {
  std::map<Figures, Steps> alike;
  for (const auto& [step, more] : unlike) alike[more].push_back(step);
  std::vector<Odd> odd;
  for (const auto& [more, steps] : alike) {
    odd.push_back({std::vector<std::size_t>(steps.begin(), steps.end()), more});
  }
  std::ranges::sort(odd, {}, [](const Odd& o) { return o.steps[0]; });
  return odd_text(odd, [](std::size_t step) { return static_cast<std::int64_t>(step); });
}

class Looker {
 public:
  Looker(const std::optional<KnownKinds>& known, bool any_size)
      : known_(known), any_size_(any_size) {}

  void look_at(std::int64_t step, const Figures& more) {
    std::map<Kind, Moved> never;
    std::map<Kind, Moved> others;
    for (const auto& [key, moved] : more) {
      const bool fresh = known_ && moved.calls > 0 && !is_known(key);
      (fresh ? never : others)[kind_of(key)] += moved;
    }
    bool unlike = false;
    for (const auto& [kind, moved] : never) {
      all_[{kind, InRun::never}][moved].push_back(step);
      unlike = true;
    }
    for (const auto& [kind, moved] : others) {
      if (!is_more(moved)) continue;
      std::optional<InRun> in_run;
      if (known_) in_run = holds(kind, moved.calls) ? InRun::yes : InRun::other_number;
      all_[{kind, in_run}][moved].push_back(step);
      unlike = unlike || in_run != InRun::yes;
    }
    if (!unlike) return;
    Figures& of_step = unlike_[step];
    for (const auto& all : {never, others}) {
      for (const auto& [kind, moved] : all) {
        of_step[{.bucket = kind.bucket, .function = kind.function, .dtype = kind.dtype}] += moved;
      }
    }
    std::erase_if(of_step, [](const auto& m) { return !is_more(m.second); });
  }

  Others finish() {
    Others o{.run_known = known_.has_value(), .unlike = unlike_.size(), .text = text_of(unlike_)};
    for (const auto& [what, by_moved] : all_) {
      const auto& [kind, in_run] = what;
      if (in_run == InRun::never) {
        o.never.push_back(sentence(kind, by_moved, known_->contains(kind)));
      }
      for (const auto& [moved, steps] : by_moved) o.all.push_back({steps, kind, moved, in_run});
    }
    return o;
  }

 private:
  using InRun = OtherSteps::InRun;

  bool is_known(const Key& key) const {
    const auto known = known_->find(kind_of(key));
    if (known == known_->end()) return false;
    return any_size_ || known->second.classes.empty() || has_size(known->second, key.bytes_class);
  }
  bool holds(const Kind& kind, double calls) const {
    const auto known = known_->find(kind);
    return known != known_->end() && (calls <= 0 || known->second.more.holds(calls));
  }

  const std::optional<KnownKinds>& known_;
  bool any_size_;
  std::map<std::pair<Kind, std::optional<InRun>>, std::map<Moved, Steps>> all_;
  std::map<std::int64_t, Figures> unlike_;
};

}  // namespace

std::optional<KnownKinds> known_kinds(const Measured& measured) {
  if (!measured.usual) return std::nullopt;
  KnownKinds known;
  for (const Group& group : measured.groups) {
    for (const auto& [key, moved] : group.figures) {
      if (tells_steps_apart(key)) known[kind_of(key)].classes.insert(key.bytes_class);
    }
  }
  for (const auto* steps : {&measured.setup, &measured.other_steps}) {
    for (const auto& [step, figures] : *steps) {
      std::map<Kind, Moved> sums;
      for (const auto& [key, moved] : figures) {
        if (moved.calls > 0) known[kind_of(key)].classes.insert(key.bytes_class);
        sums[kind_of(key)] += moved;
      }
      for (const auto& [kind, more] : sums) {
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
  Looker looker(known, any_size);
  for (const auto& [step, more] : measured.other_steps) looker.look_at(step, more);
  return looker.finish();
}

}  // namespace tprof::budget
