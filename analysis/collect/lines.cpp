#include "collect/lines.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <set>

#include "read/error.h"
#include "read/metadata.h"
#include "read/parallel.h"

namespace tprof::collect {
namespace {

using read::Process;
using Ranks = std::map<const Process*, Collectors>;  // those of one file that are of the job

void read_file(const read::Trace& trace, Ranks& ranks, const read::Chosen& chosen) {
  const auto shown_to = [&](auto see) {
    return [&ranks, see](const Process& p, const auto& line) {
      for (auto& [type, collector] : ranks.at(&p)) (collector.get()->*see)(line);
    };
  };
  read::MetadataParser metadata(trace.source.file);
  // A line of metadata is of all ranks of its process.
  const auto show_metadata = [&](const read::Line& line) {
    metadata.line(line);
    const Process* last = read::owner_at(trace, line.offset);
    if (last == nullptr || metadata.processes().empty()) return;
    for (const Process* p = last - last->lane; p <= last; ++p) {
      const auto rank = ranks.find(p);
      if (rank == ranks.end()) continue;
      for (auto& [type, c] : rank->second) c->metadata(line, metadata.processes().back());
    }
  };
  const auto wanted = [&](auto wants) {
    return std::ranges::any_of(ranks, [wants](const auto& rank) {
      return std::ranges::any_of(rank.second,
                                 [wants](const auto& c) { return (c.second.get()->*wants)(); });
    });
  };
  std::function<void(const Process&, const read::Range&)> range;
  if (wanted(&Collector::wants_ranges)) range = shown_to(&Collector::range);
  std::function<void(const Process&, const read::DeviceTime&)> device_time;
  if (wanted(&Collector::wants_times)) device_time = shown_to(&Collector::device_time);
  std::function<void(const Process&, const read::Busy&)> busy;
  if (wanted(&Collector::wants_busy)) busy = shown_to(&Collector::busy);
  read::read_lines(trace, {.wanted = [&](const Process& p) { return ranks.contains(&p); },
                           .event = shown_to(&Collector::call),
                           .launch = shown_to(&Collector::launch),
                           .last = shown_to(&Collector::last_call),
                           .range = range,
                           .open_range = shown_to(&Collector::open_range),
                           .device_time = device_time,
                           .busy = busy,
                           .thread = shown_to(&Collector::thread),
                           .metadata = show_metadata,
                           .end =
                               [&](const Process& p) {
                                 for (auto& [type, collector] : ranks.at(&p)) collector->end();
                               },
                           .chosen = chosen});
}

}  // namespace

Lines Lines::of_job(const job::Job& job, const read::Traces& traces, const Make& make,
                    const std::function<void(std::size_t)>& progress, const read::Chosen& chosen) {
  struct File {
    const read::Trace* trace = nullptr;
    Ranks ranks{};
    std::string unread{};
    std::exception_ptr error{};
  };
  const std::set<const Process*> ours(job.processes.begin(), job.processes.end());
  std::vector<File> files;
  for (const read::Trace& trace : traces.traces) {
    Ranks ranks;
    for (const Process& p : trace.processes) {
      if (!ours.contains(&p)) continue;
      Collectors collectors;
      make(p, collectors);
      if (!collectors.empty()) ranks.emplace(&p, std::move(collectors));
    }
    if (!ranks.empty()) files.push_back({&trace, std::move(ranks)});
  }
  std::atomic<std::size_t> done{0};
  std::mutex handing_over;
  read::in_parallel(files.size(), [&](std::size_t i) {
    try {
      read_file(*files[i].trace, files[i].ranks, chosen);
      const std::scoped_lock one_at_a_time(handing_over);
      for (auto& [rank, collectors] : files[i].ranks) {
        for (auto& [type, collector] : collectors) collector->hand_over();
      }
    } catch (const read::BadInput& e) {
      files[i].unread = e.what();
    } catch (...) {
      files[i].error = std::current_exception();
    }
    if (progress) progress(++done);
  });
  Lines lines;
  for (File& file : files) {
    if (file.error) std::rethrow_exception(file.error);
    if (file.unread.empty()) {
      lines.ranks_.merge(file.ranks);
    } else {
      lines.unreadable_.push_back({file.unread + "; its lines are left out", true});
    }
  }
  return lines;
}

}  // namespace tprof::collect
