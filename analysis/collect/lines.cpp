#include "collect/lines.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>

#include "collect/kept_lines.h"
#include "read/error.h"
#include "read/metadata.h"
#include "read/parallel.h"

namespace tprof::collect {
namespace {

using read::Process;
using Ranks = std::map<const Process*, Collectors>;  // those of one file that are of the job

// The collectors of each rank of a file, as every line looks for them.
class Shown {
 public:
  explicit Shown(const Ranks& ranks) {
    for (const auto& [process, collectors] : ranks) ranks_.emplace_back(process, collectors);
  }

  // Null: no collector wants anything of it.
  const Wanting* of(const Process& p) const {
    const auto found = std::ranges::lower_bound(ranks_, &p, std::less(), &Rank::first);
    return found == ranks_.end() || found->first != &p ? nullptr : &found->second;
  }

  bool any(std::vector<Collector*> Wanting::*those) const {
    return std::ranges::any_of(ranks_, [=](const Rank& r) { return !(r.second.*those).empty(); });
  }
  bool wants_so_far() const {
    return std::ranges::any_of(ranks_, [](const Rank& r) {
      return std::ranges::any_of(r.second.metadata, &Collector::wants_so_far);
    });
  }

  // False if some of it is not kept, or a collector wants what is not.
  bool show_kept(KeptOfJob& kept) const {
    if (any(&Wanting::ranges) || any(&Wanting::metadata)) return false;
    std::vector<const KeptLines*> all;
    for (const auto& [process, to] : ranks_) all.push_back(kept.of(*process));
    if (std::ranges::count(all, nullptr) != 0) return false;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& [process, to] = ranks_[i];
      all[i]->show(to);
      kept.let_go(*process);
      for (Collector* c : to.all) c->end();
    }
    return true;
  }

 private:
  using Rank = std::pair<const Process*, Wanting>;
  std::vector<Rank> ranks_;  // by address, of which a merged trace has many
};

// A file that has one ledger has said all along what it says in the end.
bool says_it_once(const read::Trace& trace) {
  return trace.metadata_read &&
         std::ranges::all_of(trace.processes, [](const Process& p) { return p.ledgers <= 1; });
}

// If its metadata was `read_before`, it is read again only for who wants to know what it has said
// up to a line.
void read_file(const read::Trace& trace, const Shown& ranks, const read::Chosen& chosen,
               bool read_before) {
  const auto shown_to = [&](auto see, std::vector<Collector*> Wanting::*those = &Wanting::all) {
    return [&ranks, see, those](const Process& p, const auto& line) {
      for (Collector* collector : ranks.of(p)->*those) (collector->*see)(line);
    };
  };
  read::MetadataParser metadata(trace.source.file);
  const bool parse = !read_before || (ranks.wants_so_far() && !says_it_once(trace));
  // A line of metadata is of all ranks of its process.
  const auto show_metadata = [&](const read::Line& line) {
    if (parse) metadata.line(line);
    const Process* last = read::owner_at(trace, line.offset);
    if (last == nullptr || (parse && metadata.processes().empty())) return;
    for (const Process* p = last - last->lane; p <= last; ++p) {
      const auto* rank = ranks.of(*p);
      if (rank == nullptr) continue;
      for (Collector* c : rank->metadata)
        c->metadata(line, parse ? metadata.processes().back() : *p);
    }
  };
  std::function<void(const Process&, const read::Range&)> range;
  if (ranks.any(&Wanting::ranges)) range = shown_to(&Collector::range, &Wanting::ranges);
  std::function<void(const Process&, const read::DeviceTime&)> device_time;
  if (ranks.any(&Wanting::times)) device_time = shown_to(&Collector::device_time, &Wanting::times);
  std::function<void(const Process&, const read::Busy&)> busy;
  if (ranks.any(&Wanting::busy)) busy = shown_to(&Collector::busy, &Wanting::busy);
  read::read_lines(trace, {.wanted = [&](const Process& p) { return ranks.of(p) != nullptr; },
                           .event = shown_to(&Collector::call),
                           .launch = shown_to(&Collector::launch),
                           .last = shown_to(&Collector::last_call),
                           .range = range,
                           .open_range = shown_to(&Collector::open_range),
                           .device_time = device_time,
                           .busy = busy,
                           .life = shown_to(&Collector::life),
                           .thread = shown_to(&Collector::thread),
                           .metadata = show_metadata,
                           .end =
                               [&](const Process& p) {
                                 for (Collector* collector : ranks.of(p)->all) collector->end();
                               },
                           .chosen = chosen});
}

struct File {
  const read::Trace* trace = nullptr;
  Ranks ranks{};
  std::string unread{};
  std::exception_ptr error{};

  // Says what went wrong instead of throwing.
  void read(const read::Chosen& chosen, const ReadBefore* before, KeptOfJob* kept) {
    try {
      const Shown shown(ranks);
      if (kept != nullptr && shown.show_kept(*kept)) return;
      read_file(*trace, shown, chosen,
                trace->metadata_read || (before != nullptr && before->contains(trace)));
    } catch (const read::BadInput& e) {
      unread = e.what();
    } catch (...) {
      error = std::current_exception();
    }
  }
  void hand_over() {
    for (auto& [rank, collectors] : ranks) collectors.hand_over();
  }
  bool whole() const { return unread.empty() && !error; }
};

void read_alone(std::vector<File>& files, const std::function<void(std::size_t)>& progress,
                const read::Chosen& chosen, const ReadBefore* before, KeptOfJob* kept) {
  std::atomic<std::size_t> done{0};
  std::mutex handing_over;
  read::in_parallel(files.size(), [&](std::size_t i) {
    files[i].read(chosen, before, kept);
    if (files[i].whole()) {
      const std::scoped_lock one_at_a_time(handing_over);
      files[i].hand_over();
    }
    if (progress) progress(++done);
  });
}

std::string text_of(const std::exception_ptr& error) {
  if (!error) return "";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return *e.what() == '\0' ? "an error" : e.what();
  }
}

std::string packed(File& file) {
  team::Archive pack;
  std::string error = text_of(file.error);
  pack(file.unread, error);
  if (!file.whole()) return pack.take();
  for (auto& [rank, collectors] : file.ranks) {
    for (auto& [type, collector] : collectors) collector->state(pack);
  }
  return pack.take();
}

void unpack(std::string_view packed, File& file) {
  team::Archive archive(packed);
  std::string error;
  archive(file.unread, error);
  if (!error.empty()) file.error = std::make_exception_ptr(std::runtime_error(error));
  if (!file.whole()) return;
  for (auto& [rank, collectors] : file.ranks) {
    for (auto& [type, collector] : collectors) collector->state(archive);
  }
  if (!archive.empty()) throw std::logic_error("state() packs more than it unpacks");
}

// Each process reads its share, and packs what it kept of a file before it reads the next. Then all
// files' are unpacked in every process, also its own: so none can be told apart from the others.
void read_together(team::Team& team, std::vector<File>& files, const Make& make,
                   const std::function<void(std::size_t)>& progress, const read::Chosen& chosen,
                   const ReadBefore* before, KeptOfJob* kept) {
  std::vector<std::string> mine((files.size() + team.size() - 1 - team.rank()) / team.size());
  std::atomic<std::size_t> done{0};
  read::in_parallel(mine.size(), [&](std::size_t k) {
    File& file = files[team.rank() + k * team.size()];
    file.read(chosen, before, kept);
    mine[k] = packed(file);
    for (auto& [rank, collectors] : file.ranks) collectors = {};
    if (progress) progress(std::min(files.size(), ++done * team.size()));
  });
  for (std::size_t i = team.rank(); i < files.size(); i += team.size()) {
    for (auto& [rank, collectors] : files[i].ranks) make(*rank, collectors);
  }
  team::share(team, files.size(), std::move(mine), [&](std::size_t i, std::string_view bytes) {
    unpack(bytes, files.at(i));
    if (files[i].whole()) files[i].hand_over();
  });
}

}  // namespace

Wanting::Wanting(const Collectors& collectors) {
  for (const auto& [type, collector] : collectors) {
    Collector* c = collector.get();
    all.push_back(c);
    if (c->wants_ranges()) ranges.push_back(c);
    if (c->wants_times()) times.push_back(c);
    if (c->wants_busy()) busy.push_back(c);
    if (c->wants_metadata()) metadata.push_back(c);
  }
}

Lines Lines::of_job(const job::Job& job, const read::Traces& traces, const Make& make,
                    const std::function<void(std::size_t)>& progress, const read::Chosen& chosen,
                    ReadBefore* before, KeptOfJob* kept) {
  std::vector<const Process*> ours(job.processes.begin(), job.processes.end());
  std::ranges::sort(ours, std::less());
  std::vector<File> files;
  for (const read::Trace& trace : traces.traces) {
    Ranks ranks;
    for (const Process& p : trace.processes) {
      if (!std::ranges::binary_search(ours, &p, std::less())) continue;
      Collectors collectors;
      make(p, collectors);
      collectors.shrink_to_fit();
      if (!collectors.empty()) ranks.emplace(&p, std::move(collectors));
    }
    if (!ranks.empty()) files.push_back({&trace, std::move(ranks)});
  }
  traces.team ? read_together(*traces.team, files, make, progress, chosen, before, kept)
              : read_alone(files, progress, chosen, before, kept);
  Lines lines;
  for (File& file : files) {
    if (file.error) std::rethrow_exception(file.error);
    if (file.unread.empty()) {
      if (before != nullptr && !file.trace->metadata_read) before->insert(file.trace);
      lines.ranks_.merge(file.ranks);
    } else {
      lines.unreadable_.push_back({file.unread + "; its lines are left out", true});
    }
  }
  return lines;
}

}  // namespace tprof::collect
