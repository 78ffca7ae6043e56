#include "export/other_files.h"

#include <glob.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <regex>

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
                                         diagnose::ranks_of(chosen).str()));
}

// A recording of another run would be put hours or years away from the calls.
void require_same_time(const fs::path& file, const OtherTrace& trace,
                       const std::vector<const read::Process*>& job) {
  const auto [first, last] = diagnose::span_of(job);
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

}  // namespace

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
