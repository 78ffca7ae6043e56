#include "export/other_trace.h"

#include <glob.h>

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <cstdlib>
#include <map>
#include <optional>
#include <regex>
#include <set>

#include "check/ends.h"
#include "check/names.h"
#include "read/error.h"
#include "read/folder.h"
#include "text/text.h"

namespace tprof::trace_export {
namespace {

namespace fs = std::filesystem;

// The number after the last "rank" of a file's name.
std::optional<std::int64_t> rank_in_name(const fs::path& file) {
  static const std::regex kRank(".*rank[-_.=]?([0-9]{1,18}).*");
  std::smatch found;
  const std::string name = file.filename().string();
  if (!std::regex_match(name, found, kRank)) return std::nullopt;
  return std::stoll(found[1]);
}

std::vector<fs::path> files_of(const std::string& pattern) {
  if (fs::is_directory(pattern)) {
    std::vector<fs::path> files;
    for (const read::TraceFile& file : read::files_in(pattern)) files.push_back(file.path);
    return files;
  }
  if (fs::exists(pattern)) return {pattern};
  glob_t found{};
  std::vector<fs::path> files;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  return files;
}

const read::Process* process_of(std::int64_t rank, const std::vector<const read::Process*>& all) {
  const auto process =
      std::ranges::find_if(all, [&](const read::Process* p) { return p->header.rank == rank; });
  return process == all.end() ? nullptr : *process;
}

const read::Process& owner_of(const fs::path& file, std::optional<std::int64_t> rank,
                              const std::vector<const read::Process*>& chosen) {
  if (!rank && chosen.size() == 1) return *chosen[0];
  if (!rank) {
    throw read::BadInput(file, "nothing tells which rank's it is: give it as --with RANK=FILE");
  }
  if (const read::Process* process = process_of(*rank, chosen)) return *process;
  throw read::BadInput(file, fmt::format("it is of rank {}, which is not merged: that is {}", *rank,
                                         check::ranks_of(chosen).str()));
}

// A recording of another run would be put hours or years away from the calls.
void require_same_time(const fs::path& file, const OtherTrace& trace,
                       const std::vector<const read::Process*>& job) {
  const auto [first, last] = check::span_of(job);
  // From when on, and until when, the job may have been seen by others.
  auto [from, until] = std::pair(first, last);
  for (const read::Process* p : job) {
    from = std::min(from, p->header.start_ns);
    if (p->end == read::End::running || !p->ledger) until = INT64_MAX;
  }
  if (trace.end_ns() >= from && trace.begin_ns() <= until) return;
  throw read::BadInput(
      file, fmt::format("it is of another time than this job: {} to {}, not {} to {}",
                        text::utc(trace.begin_ns()), text::utc(trace.end_ns()), text::utc(first),
                        text::utc(last)));
}

// The clocks of others are refined by the collectives that both they and we saw.
using Stays = std::vector<align::Stay>;

// The collectives of a process that have lines, by CLOCK_REALTIME.
struct OurCollectives {
  explicit OurCollectives(const read::Process& p) : rank(p) {}

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
  const read::Process& rank;
  std::vector<Call> all{};
};

// True if lines are missing outside of windows only.
bool in_windows(const read::Process& process) {
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

// Finds the shift of each that marks collectives, as far as they prove it.
void refine_clocks(std::vector<OtherFile>& others, const run::Lines& lines) {
  std::set<const read::Process*> marked;
  for (const OtherFile& other : others) {
    if (!other.trace->collectives().empty()) marked.insert(other.process);
  }
  const auto ours = lines.each([&](const read::Process& p) -> std::optional<OurCollectives> {
    return marked.contains(&p) ? std::optional(OurCollectives(p)) : std::nullopt;
  });
  for (OtherFile& other : others) {
    const OurCollectives* of = ours.of<OurCollectives>(other.process);
    const bool none = other.trace->collectives().empty() || of == nullptr;
    other.why = none ? "it marks no collective" : refine(other, *of);
  }
}

}  // namespace

std::string OtherFile::clock() const {
  if (!shift) return "the wall clock: " + why;
  return fmt::format("refined by {} collective{}, shifted {} us", shift->pairs,
                     shift->pairs == 1 ? "" : "s", micros(shift->ns));
}

std::vector<OtherFile> other_files(const std::vector<std::string>& with,
                                   const std::vector<const read::Process*>& chosen,
                                   const run::Lines& lines, std::vector<read::Skipped>& skipped) {
  std::vector<OtherFile> found;
  std::optional<read::BadInput> first_error;
  for (const std::string& word : with) {
    static const std::regex kGiven("([0-9]{1,18})=(.*)");
    std::smatch parts;
    const bool given = std::regex_match(word, parts, kGiven);
    const std::string pattern = given ? parts[2].str() : word;
    const std::vector<fs::path> files = files_of(pattern);
    if (files.empty()) throw read::BadInput(fs::path(pattern), "no such file, for --with");
    for (const fs::path& file : files) {
      std::optional<std::int64_t> rank;
      if (given) rank = std::stoll(parts[1]);
      try {
        const auto trace = std::make_shared<OtherTrace>(file);
        if (!rank) rank = trace->rank();
        if (!rank) rank = rank_in_name(file);
        const read::Process& process = owner_of(file, rank, chosen);
        require_same_time(file, *trace, chosen);
        found.push_back({file, trace, &process});
      } catch (const read::BadInput& e) {
        // Its rank was not asked for.
        const bool unasked = rank && std::ranges::count(lines.job().ranks, *rank) != 0 &&
                             process_of(*rank, chosen) == nullptr;
        skipped.push_back({std::string(e.what()) + "; left out", !unasked});
        if (!first_error) first_error = e;
      }
    }
  }
  if (found.empty() && first_error) throw *first_error;
  refine_clocks(found, lines);
  return found;
}

std::vector<std::string> notes(const std::vector<OtherFile>& others) {
  const auto name = [](const OtherFile& o) { return text::printable(o.file.filename().string()); };
  std::map<std::string, std::vector<const OtherFile*>> by_clock;
  for (const OtherFile& other : others) {
    by_clock[other.shift ? "" : other.clock()].push_back(&other);
  }
  std::vector<std::string> said;
  for (const auto& [clock, files] : by_clock) {
    // Shows the file that was shifted furthest.
    const OtherFile& one = **std::ranges::max_element(
        files, {}, [](const OtherFile* o) { return std::abs(o->shift_ns()); });
    const std::string more = files.size() == 1
                                 ? ""
                                 : fmt::format("; {} more {}", files.size() - 1,
                                               clock.empty() ? "by no more than that" : "too");
    said.push_back(name(one) + ": " + one.clock() + more);
  }
  std::uint64_t theirs = 0;
  std::uint64_t ours = 0;
  for (const OtherFile& other : others) {
    if (other.shift) theirs += other.shift->pairs;
    for (const read::Collectives& c : read::collectives_of(*other.process)) ours += c.count;
    if (const std::uint64_t n = other.trace->left_out(); n != 0) {
      said.push_back(fmt::format("{}: {} {} left out, as their ts is 0 or their length negative",
                                 name(other), text::thousands(n),
                                 n == 1 ? "event is" : "events are"));
    }
  }
  if (theirs != 0) {
    said.push_back(fmt::format("PyTorch's {} {} of our {} collectives",
                               others.size() == 1 ? "trace has" : "traces have",
                               text::thousands(theirs), text::thousands(ours)));
  }
  return said;
}

}  // namespace tprof::trace_export
