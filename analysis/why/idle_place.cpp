#include "why/slow_ranks.h"

namespace tprof::why {

using check::Say;

// Between steps the host does other things than launch kernels.
void tell_place(const Idle& idle, const Slow& slow, check::Finding& f) {
  const Place* place = place_of(idle);
  if (place == nullptr) return;
  const check::Values when{{"once", slow.steps.size() == 1},
                           {"at", std::nullopt},
                           {"some", slow.steps.size() > 1},
                           {"all", slow.steps.empty()}};
  if (place->at == Place::At::end) {
    f.evidence.push_back({Say::idle_at_end, {{"one", f.ranks.size() < 2}, {"who", std::nullopt}}});
    return;
  }
  if (place->loads) {
    f.evidence.push_back({Say::idle_before_copies, when});
    return;
  }
  const auto named = [](const text::Kept& call) {
    return call.empty() ? std::optional<std::string>() : call.str();
  };
  check::Fact within{Say::idle_within, when};
  set(within, {"behind", named(place->behind)});
  set(within, {"before", named(place->before)});
  f.evidence.push_back(std::move(within));
  f.next = check::Fact{Say::look_there, {{"ahead", place->behind.empty()}}};
}

}  // namespace tprof::why
