// Finds the calls of its host between which a rank's device is idle in a step. The host was there
// when the device ran out of work, so that is where to look.
#pragma once

#include <cstdint>
#include <map>

#include "graph/model.h"
#include "text/kept.h"
#include "why/cause.h"

namespace tprof::why {

// A smaller share of a step is normal: launches have gaps in healthy jobs too.
inline constexpr double kLeastIdle = 0.05;

struct Place {
  // end: after the device's last work of a step, before the next step began. lead: after it began,
  // before its first work. inside: anything else.
  enum class At : std::uint8_t { end, lead, inside };
  At at = At::inside;
  bool loads = false;   // inside: before a batch was copied to the device
  text::Kept behind{};  // "first ncclAllReduce"; empty: after the copies that begin a step
  text::Kept before{};  // empty: before the end of the step
  auto operator<=>(const Place&) const = default;
};

using Idle = std::map<Place, double>;  // in ns

// Sorts these ranks (indices into Times::ranks): those whose devices are idle longest come first.
Places by_idle(const Evidence& e, Places ranks);
// The first n of an order, ascending.
Places first_of(const Places& order, std::size_t n);

// The idle time of a rank of the graph, by step number.
std::map<std::int64_t, Idle> idle_of(const graph::Model& model, std::size_t rank);

// How much longer these ranks (indices into Times::ranks) are idle than the median of the others,
// in these steps (indices into Evidence::steps).
Idle more_idle(const Evidence& e, const Places& ranks, const Places& steps);

// True if most of it is before a step's first work, where a batch is loaded.
bool mostly_leads(const Idle& idle);

// The place of most of it; null: it is spread over several.
const Place* place_of(const Idle& idle);

}  // namespace tprof::why
