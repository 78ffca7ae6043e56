#include "export/other_files.h"

#include <glob.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <new>
#include <optional>
#include <string_view>

#include "diagnose/ends.h"
#include "diagnose/names.h"
#include "read/error.h"
#include "read/folder.h"
#include "text/text.h"

namespace tprof::trace_export {

namespace {

namespace fs = std::filesystem;

// Returns the number that `text` begins with.
std::optional<std::int64_t> number_at(std::string_view text, std::size_t* digits = nullptr) {
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || n < 0) return std::nullopt;
  if (digits != nullptr) *digits = static_cast<std::size_t>(end - text.data());
  return n;
}

std::optional<std::int64_t> rank_in_name(const fs::path& file) {
  constexpr std::string_view kWord = "rank";
  const std::string name = file.filename().string();
  const std::size_t at = name.rfind(kWord);
  if (at == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(name).substr(at + kWord.size());
  if (!rest.empty() && std::string_view("-_.=").find(rest[0]) != std::string_view::npos) {
    rest.remove_prefix(1);
  }
  return number_at(rest);
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

// From when on, and until when, the job may have been seen by others.
std::pair<std::int64_t, std::int64_t> life_of(const std::vector<const read::Process*>& job) {
  std::pair<std::int64_t, std::int64_t> life = diagnose::span_of(job);
  for (const read::Process* p : job) {
    life.first = std::min(life.first, p->header.start_ns);
    if (p->end == read::End::running || !p->ledger) life.second = INT64_MAX;
  }
  return life;
}

// A recording of another run would be put hours or years away from the calls.
void require_same_time(const fs::path& file, const OtherTrace& trace,
                       const std::vector<const read::Process*>& job) {
  const auto [from, to] = life_of(job);
  if (trace.end_ns() >= from && trace.begin_ns() <= to) return;
  const auto [first, last] = diagnose::span_of(job);
  throw read::BadInput(
      file, fmt::format("it is of another time than this job: {} to {}, not {} to {}",
                        text::utc(trace.begin_ns()), text::utc(trace.end_ns()), text::utc(first),
                        text::utc(last)));
}

}  // namespace

std::vector<OtherFile> other_files(const std::vector<std::string>& with,
                                   const std::vector<const read::Process*>& chosen,
                                   const read::Traces& traces,
                                   std::vector<read::Skipped>& skipped) {
  std::vector<OtherFile> found;
  std::vector<Marked> marked;  // one for each of `found`
  std::optional<read::BadInput> first_error;
  const auto leave_out = [&](const read::BadInput& e, bool unreadable) {
    skipped.push_back({std::string(e.what()) + "; left out", unreadable});
    if (!first_error) first_error = e;
  };
  const auto is_here = [&](std::int64_t rank) {
    return std::ranges::any_of(traces.traces, [&](const read::Trace& trace) {
      return std::ranges::any_of(trace.processes,
                                 [&](const read::Process& p) { return p.header.rank == rank; });
    });
  };
  for (const std::string& word : with) {
    std::size_t digits = 0;
    auto given = number_at(word, &digits);
    if (given && (digits == word.size() || word[digits] != '=')) given.reset();
    const std::string pattern = given ? word.substr(digits + 1) : word;
    const std::vector<fs::path> files = files_of(pattern);
    if (files.empty()) throw read::BadInput(fs::path(pattern), "no such file, for --with");
    for (const fs::path& file : files) {
      std::optional<std::int64_t> rank = given;
      try {
        const auto trace = std::make_shared<OtherTrace>(file);
        if (!rank) rank = trace->rank();
        if (!rank) rank = rank_in_name(file);
        const read::Process& process = owner_of(file, rank, chosen);
        require_same_time(file, *trace, chosen);
        found.push_back({file, trace, &process, trace->begin_ns() - process.header.base_time_ns});
        marked.push_back({&process, trace->collectives()});
      } catch (const read::BadInput& e) {
        const bool unasked = rank && is_here(*rank) && process_of(*rank, chosen) == nullptr;
        leave_out(e, !unasked);
      } catch (const std::bad_alloc&) {
        leave_out(read::BadInput(file, "too large for memory"), true);
      }
    }
  }
  if (found.empty() && first_error) throw *first_error;
  const std::vector<OtherClock> clocks = other_clocks(marked, traces);
  for (std::size_t i = 0; i < found.size(); ++i) {
    found[i].clock = clocks[i];
    if (clocks[i].shift) found[i].begin_ns += clocks[i].shift->ns;
  }
  return found;
}

std::vector<std::string> notes(const std::vector<OtherFile>& others) {
  const auto name = [](const OtherFile& o) { return text::printable(o.file.filename().string()); };
  std::map<std::string, std::vector<const OtherFile*>> by_clock;
  for (const OtherFile& other : others) {
    by_clock[other.clock.shift ? "" : other.clock.sentence()].push_back(&other);
  }
  std::vector<std::string> said;
  for (const auto& [clock, files] : by_clock) {
    // Shows the file that was shifted furthest.
    const OtherFile& one = **std::ranges::max_element(files, {}, [](const OtherFile* o) {
      return o->clock.shift ? std::abs(o->clock.shift->ns) : 0;
    });
    const std::string more = files.size() == 1
                                 ? ""
                                 : fmt::format("; {} more {}", files.size() - 1,
                                               clock.empty() ? "by no more than that" : "too");
    said.push_back(name(one) + ": " + one.clock.sentence() + more);
  }
  std::uint64_t theirs = 0;
  std::uint64_t ours = 0;
  for (const OtherFile& other : others) {
    if (other.clock.shift) theirs += other.clock.shift->pairs;
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
