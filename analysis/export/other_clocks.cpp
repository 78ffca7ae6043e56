// The clocks of other tools' traces, refined by the collectives that both they and we saw.
#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <map>
#include <set>

#include "export/other_files.h"
#include "export/pen.h"
#include "text/text.h"

namespace tprof::trace_export {
namespace {

using read::Process;
using Stays = std::vector<align::Stay>;

// The collectives of a process that have lines, by CLOCK_REALTIME.
struct OurCollectives {
  explicit OurCollectives(const Process& p) : rank(p) {}

  void call(const read::Event& e) {
    if (!e.collective() || e.failed) return;
    const bool of_all = e.bucket == Bucket::ALLGATHER || e.bucket == Bucket::RESHARDING;
    const read::Comm* comm = read::comm_of(rank, e.comm);
    const std::int64_t times = comm == nullptr ? 0 : of_all ? comm->nranks : 1;
    const std::int64_t begin_ns = rank.header.base_time_ns + e.ts_ns;
    all.push_back(
        {{e.bucket, e.count * static_cast<std::uint64_t>(times), begin_ns, begin_ns + e.dur_ns},
         *e.comm,
         e.seq});
  }
  void end() {
    std::ranges::sort(all, {}, [](const Call& call) { return call.stay.begin_ns; });
  }

  // True if no line is missing.
  bool whole() const {
    std::uint64_t issued = 0;
    for (const read::Collectives& c : read::collectives_of(rank)) issued += c.count;
    return rank.end != read::End::lost && all.size() == issued;
  }

  // Returns the calls of these kinds, split where a line is missing.
  std::vector<Stays> stretches(const std::bitset<kBucketCount>& kinds) const {
    std::vector<Stays> parts(1);
    std::map<std::int64_t, std::uint64_t> next;  // next seq of each communicator
    for (const Call& call : all) {
      const auto [place, first] = next.try_emplace(call.comm, call.seq);
      if (place->second != call.seq && !parts.back().empty()) parts.emplace_back();
      place->second = call.seq + 1;
      if (kinds.test(static_cast<std::size_t>(call.stay.kind))) parts.back().push_back(call.stay);
    }
    if (parts.back().empty()) parts.pop_back();
    return parts;
  }

  struct Call {
    align::Stay stay{};
    std::int64_t comm = 0;
    std::uint64_t seq = 0;
  };
  const Process& rank;
  std::vector<Call> all{};
};

// True if lines are missing outside of windows only.
bool in_windows(const Process& process) {
  if (!process.footer || process.end == read::End::lost) return false;
  return std::ranges::all_of(process.footer->dropped, [](const auto& dropped) {
    return dropped.first == "window" || dropped.second == 0;
  });
}

// Returns why there is no shift.
std::string refine(OtherFile& other, const OurCollectives& ours) {
  const Stays& theirs = other.trace->collectives();
  std::bitset<kBucketCount> kinds;
  for (const align::Stay& s : theirs) kinds.set(static_cast<std::size_t>(s.kind));
  const std::vector<Stays> stretches = ours.stretches(kinds);
  if (stretches.empty()) return "no line here is of a collective that it marks";
  const bool whole = ours.whole();
  const auto shift = align::enclosing_shift(stretches, theirs, whole);
  if (!shift) {
    return fmt::format("no shift, or more than one, puts our collectives into the {} that it marks",
                       text::thousands(theirs.size()));
  }
  if (shift->ns != 0 && !whole && !in_windows(*other.process)) {
    return "lines of our collectives are missing";
  }
  other.shift = shift;
  return "";
}

}  // namespace

std::string OtherFile::clock() const {
  if (!shift) return "the wall clock: " + why;
  return fmt::format("refined by {} collective{}, shifted {} us", shift->pairs,
                     shift->pairs == 1 ? "" : "s", micros(shift->ns));
}

void refine_clocks(std::vector<OtherFile>& others, const run::Lines& lines) {
  std::set<const Process*> marked;
  for (const OtherFile& other : others) {
    if (!other.trace->collectives().empty()) marked.insert(other.process);
  }
  const auto ours = lines.each([&](const Process& p) -> std::optional<OurCollectives> {
    return marked.contains(&p) ? std::optional(OurCollectives(p)) : std::nullopt;
  });
  for (OtherFile& other : others) {
    const OurCollectives* of = ours.of<OurCollectives>(other.process);
    const bool none = other.trace->collectives().empty() || of == nullptr;
    other.why = none ? "it marks no collective" : refine(other, *of);
  }
}

}  // namespace tprof::trace_export
