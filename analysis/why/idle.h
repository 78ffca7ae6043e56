// Where in its steps a rank's device stands idle: between which calls of its host. The host was
// there when the device had nothing to do, so that tells what to look at.
#pragma once

#include <cstdint>
#include <map>

#include "graph/model.h"
#include "text/kept.h"
#include "why/cause.h"

namespace tprof::why {

// Less of a step is nothing: launches have gaps in healthy jobs, too.
inline constexpr double kLeastIdle = 0.05;

struct Place {
  // end: the device had done all of a step, and the next one had not begun. lead: that had begun,
  // and the device had done nothing for it. inside: what is left.
  enum class At : std::uint8_t { end, lead, inside };
  At at = At::inside;
  bool loads = false;   // inside: until a batch was copied to the device
  text::Kept behind{};  // "first ncclAllReduce"; empty: behind the copies with which a step begins
  text::Kept before{};  // empty: before the end of the step
  auto operator<=>(const Place&) const = default;
};

using Idle = std::map<Place, double>;  // in ns

// The idle time of a rank of the graph, by the step's number.
std::map<std::int64_t, Idle> idle_of(const graph::Model& model, std::size_t rank);

// By how much these ranks (indices of Times::ranks) stand idle longer than the usual one of the
// others, over these places of Evidence::steps.
Idle more_idle(const Evidence& e, const Places& ranks, const Places& steps);

// True if most of it lies ahead of a step's first work: there a batch is loaded.
bool mostly_leads(const Idle& idle);

// The place of most of it; null: it lies in several.
const Place* place_of(const Idle& idle);

}  // namespace tprof::why
