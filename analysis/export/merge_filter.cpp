#include "export/merge_filter.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "read/input.h"
#include "read/window_files.h"

namespace tprof::trace_export {
namespace {

using read::Process;

constexpr double kTypicalRatio = 12;  // of gzip's to the lines

// The last bytes of a file that gzip made say its size modulo 2^32, and its own size how often that
// went round.
std::uint64_t text_bytes(const std::filesystem::path& file) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(file, error);
  if (error) return 0;
  if (std::ranges::find(read::kPackedEndings, file.extension().string()) ==
      std::end(read::kPackedEndings)) {
    return size;
  }
  if (file.extension() != ".gz") {
    return static_cast<std::uint64_t>(static_cast<double>(size) * kTypicalRatio);
  }
  std::ifstream in(file, std::ios::binary);
  unsigned char last[4] = {};
  in.seekg(-4, std::ios::end);
  in.read(reinterpret_cast<char*>(last), sizeof last);
  const double told =
      static_cast<double>(last[0]) + 256.0 * last[1] + 65536.0 * last[2] + 16777216.0 * last[3];
  constexpr double kRound = 4294967296.0;
  const double rounds = std::round((static_cast<double>(size) * kTypicalRatio - told) / kRound);
  return static_cast<std::uint64_t>(told + std::max(rounds, 0.0) * kRound);
}

// The events of windows that have files of their own, by the stem of the rank file.
using Windows = std::map<std::filesystem::path, std::map<std::string, std::uint64_t>>;

std::uint64_t window_bytes(const std::filesystem::path& rank_file, Windows& folders) {
  const std::filesystem::path folder = rank_file.parent_path();
  const auto [known, fresh] = folders.try_emplace(folder);
  std::error_code error;
  if (fresh) {
    for (std::filesystem::directory_iterator entry(folder.empty() ? "." : folder, error), end;
         !error && entry != end; entry.increment(error)) {
      const std::string stem = read::stem_of_rank_file(entry->path().filename().string());
      if (!stem.empty()) known->second[stem] += text_bytes(entry->path());
    }
  }
  const auto of_rank = known->second.find(rank_file.stem().string());
  return of_rank == known->second.end() ? 0 : of_rank->second;
}

double share(const filter::Selection& asked, const Process& p) {
  const auto [in_lines, left_out] = asked.lines_of(p);
  if (in_lines == 0) return 1;
  return static_cast<double>(in_lines - left_out) / static_cast<double>(in_lines);
}

}  // namespace

bool Member::wants(std::int64_t from_ns, std::int64_t to_ns) const {
  if (asked == nullptr || !asked->filter().steps) return true;
  const auto of_rank = asked->found()->ranks.find(process);
  if (of_rank == asked->found()->ranks.end()) return false;
  return std::ranges::any_of(of_rank->second, [&](const steps::Interval& i) {
    const bool before_its_end = from_ns < i.to_ns;
    return asked->filter().steps->holds(i.step) && before_its_end &&
           (i.from_ns < to_ns || (from_ns == to_ns && i.from_ns == to_ns));
  });
}

void add_filter(Members& members, const filter::Selection& asked) {
  if (!asked.words().of_calls()) return;
  for (auto& [process, member] : members) {
    member.asked = &asked;
    // A footer is of all lanes, and stands with the first.
    if (process->lane != 0) continue;
    for (const Process* lane = process; lane < process + process->lanes; ++lane) {
      member.left_out += asked.lines_of(*lane).second;
    }
  }
}

std::uint64_t estimated_bytes(const read::Traces& traces, const std::vector<const Process*>& chosen,
                              const filter::Selection& asked) {
  const std::set<const Process*> those(chosen.begin(), chosen.end());
  double all = 0;
  Windows windows;
  for (const read::Trace& trace : traces.traces) {
    double parts = 0;  // each rank of a file with several has its part
    for (const Process& p : trace.processes) {
      if (those.contains(&p)) parts += share(asked, p);
    }
    if (parts == 0) continue;
    const read::Source& source = trace.source;
    const double bytes =
        static_cast<double>(text_bytes(source.file) + source.rest.size() +
                            (source.windows_of ? window_bytes(source.file, windows) : 0));
    all += bytes * parts / static_cast<double>(trace.processes.size());
  }
  return static_cast<std::uint64_t>(all);
}

}  // namespace tprof::trace_export
