#include "run/lines.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <set>
#include <stdexcept>

#include "interpose/format/line_kinds.h"
#include "read/error.h"
#include "read/metadata.h"
#include "read/parallel.h"

namespace tprof::run {
using read::Process;

namespace {

const Process* first_rank(const Process& p) {
  return &p - p.lane;
}

}  // namespace

struct OfProcess {
  std::optional<KeptLines> kept{};  // nullopt: there was no room
  Said said{};
  bool device_times = false;
};

struct OfFile {
  const read::Trace* trace = nullptr;
  std::vector<const Process*> firsts{};  // the first ranks of its processes, by address
  std::vector<OfProcess> of{};           // of each of these
  std::size_t shapes = 0;                // whose: of the process of the team that loaded it
  std::string unread{};
  std::exception_ptr error{};

  // Null: the job has none of its ranks.
  OfProcess* process(const Process& p) {
    const auto at = std::ranges::lower_bound(firsts, first_rank(p), std::less());
    if (at == firsts.end() || *at != first_rank(p)) return nullptr;
    return &of[static_cast<std::size_t>(at - firsts.begin())];
  }
  bool whole() const { return unread.empty() && !error; }
};

namespace {

// Metadata lines that somebody wants; what else they say is in Said.
bool is_kept(std::string_view line) {
  return is_line(line, LineKind::step) || is_line(line, LineKind::site) ||
         is_line(line, LineKind::window);
}

// A file that has one ledger has said all along what it says in the end.
bool says_it_once(const read::Trace& trace) {
  return trace.metadata_read &&
         std::ranges::all_of(trace.processes, [](const Process& p) { return p.ledgers <= 1; });
}

// Calls see(process) for each rank of the process that a line of metadata is of.
template <typename F>
void each_lane(const read::Trace& trace, const read::Line& line, const F& see) {
  const Process* last = read::owner_at(trace, line.offset);
  if (last == nullptr) return;
  for (const Process* p = last - last->lane; p <= last; ++p) see(*p);
}

std::string text_of(const std::exception_ptr& error) {
  if (!error) return "";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return *e.what() == '\0' ? "an error" : e.what();
  }
}

std::string packed(OfFile& file) {
  team::Archive pack;
  std::string error = text_of(file.error);
  pack(file.unread, error);
  for (OfProcess& process : file.of) pack(process);
  return pack.take();
}

void unpack(std::string_view packed, OfFile& file) {
  team::Archive from(packed);
  std::string error;
  from(file.unread, error);
  if (!error.empty()) file.error = std::make_exception_ptr(std::runtime_error(error));
  for (OfProcess& process : file.of) from(process);
}

}  // namespace

class Store {
 public:
  Store(const job::Job& job, const read::Traces& from, std::function<void(std::size_t)> progress_of,
        std::size_t most_bytes)
      : traces(from), progress_(std::move(progress_of)), most_bytes_(most_bytes) {
    const std::set<const Process*> ours(job.processes.begin(), job.processes.end());
    for (const read::Trace& trace : traces.traces) {
      OfFile file{.trace = &trace};
      for (const Process& p : trace.processes) {
        if (!ours.contains(&p)) continue;
        file_of_.emplace(&p, files_.size());
        if (file.firsts.empty() || file.firsts.back() != first_rank(p)) {
          file.firsts.push_back(first_rank(p));
        }
      }
      if (!file.firsts.empty()) files_.push_back(std::move(file));
    }
  }

  void load() {
    if (std::exchange(loaded_, true)) return;
    for (OfFile& file : files_) file.of.resize(file.firsts.size());
    const std::size_t team = traces.team ? traces.team->size() : 1;
    const std::size_t me = traces.team ? traces.team->rank() : 0;
    shapes_.push_back(std::make_unique<ShapesOfLines>());
    most_bytes_ /= team;
    std::vector<std::string> mine((files_.size() + team - 1 - me) / team);
    std::atomic<std::size_t> done{0};
    read::in_parallel(mine.size(), [&](std::size_t k) {
      OfFile& file = files_[me + k * team];
      load(file);
      if (traces.team) {
        mine[k] = packed(file);
        file.of = std::vector<OfProcess>(file.firsts.size());
      }
      if (progress_) progress_(std::min(files_.size(), ++done * team));
    });
    progress_ = {};
    shapes_[0]->end();
    if (traces.team) share(std::move(mine));
    for (const OfFile& file : files_) {
      if (file.error) std::rethrow_exception(file.error);
      if (!file.unread.empty()) cannot_read(file.unread);
    }
  }

  void show(const Lines::Ranks& ranks, const Reader& reader) {
    const OfFile& file = files_[file_of_.at(ranks[0])];
    if (const OfProcess* of = process(*ranks[0]); of->kept) {
      of->kept->show(*first_rank(*ranks[0]), *shapes_[file.shapes], reader);
      return;
    }
    read::LineReader again = reader.lines;
    if (reader.metadata) {
      again.metadata = [&](const read::Line& line) {
        if (!is_kept(line.text)) return;
        each_lane(*file.trace, line, [&](const Process& p) {
          if (again.wanted(p)) reader.metadata(p, line);
        });
      };
    }
    read::read_lines(*file.trace, again);
  }

  // Null: its lines can't be read, or it is not of the job.
  OfProcess* process(const Process& p) {
    const auto file = file_of_.find(&p);
    if (file == file_of_.end() || !files_[file->second].whole()) return nullptr;
    return files_[file->second].process(p);
  }
  // A place that the ranks have in common which are shown together.
  const void* together(const Process& p) {
    return process(p)->kept ? static_cast<const void*>(first_rank(p))
                            : static_cast<const void*>(&files_[file_of_.at(&p)]);
  }

  void cannot_read(const std::string& why) {
    const std::scoped_lock lock(mutex_);
    const std::string reason = why + "; its lines are left out";
    if (std::ranges::count(unreadable, reason, &read::Skipped::reason) == 0) {
      unreadable.push_back({reason, true});
    }
  }

  const read::Traces& traces;
  std::vector<read::Skipped> unreadable{};

 private:
  struct Loading {
    OfProcess& to;
    KeptLines kept{};
    Listener listener{};
    std::optional<Keeper> keeper{};
    std::size_t lines = 0;
  };

  // Says what went wrong instead of throwing.
  void load(OfFile& file) {
    try {
      load_lines(file);
    } catch (const read::BadInput& e) {
      file.unread = e.what();
    } catch (...) {
      file.error = std::current_exception();
    }
    if (!file.whole()) file.of = std::vector<OfProcess>(file.firsts.size());
  }

  void load_lines(OfFile& file) {
    const read::Trace& trace = *file.trace;
    std::vector<std::unique_ptr<Loading>> all;
    for (OfProcess& of : file.of) {
      all.emplace_back(new Loading{of});
      all.back()->keeper.emplace(*shapes_[0], all.back()->kept);
    }
    // Null: it is not of the job.
    const auto loading = [&](const Process& p) -> Loading* {
      const OfProcess* of = file.process(p);
      return of == nullptr ? nullptr : all[static_cast<std::size_t>(of - file.of.data())].get();
    };
    const auto keep = [&](auto add) {
      return [this, &loading, add](const Process& p, const auto& line) {
        Loading& to = *loading(p);
        if (!to.keeper) return;
        (to.keeper->of(p).*add)(line);
        if (++to.lines % 4096 != 0 || has_room(to.kept.bytes())) return;
        to.keeper.reset();
        to.kept = {};
      };
    };
    read::MetadataParser metadata(trace.source.file);
    const bool parse = !says_it_once(trace);
    read::read_lines(
        trace,
        {.wanted = [&](const Process& p) { return loading(p) != nullptr; },
         .event = keep(&Keeper::call),
         .launch = keep(&Keeper::launch),
         .last = keep(&Keeper::last_call),
         .range = keep(&Keeper::range),
         .device_time =
             [&, add = keep(&Keeper::device_time)](const Process& p, const read::DeviceTime& t) {
               loading(p)->to.device_times = true;
               add(p, t);
             },
         .busy = keep(&Keeper::busy),
         .life = keep(&Keeper::life),
         .thread = keep(&Keeper::thread),
         .metadata =
             [&, add = keep(&Keeper::metadata)](const read::Line& line) {
               if (parse) metadata.line(line);
               if (parse && metadata.processes().empty()) return;
               each_lane(trace, line, [&](const Process& p) {
                 Loading* of = loading(p);
                 if (of == nullptr) return;
                 if (p.lane == 0) {
                   of->listener.metadata(line, parse ? metadata.processes().back() : p);
                 }
                 if (is_kept(line.text)) add(p, line);
               });
             }});
    for (std::size_t i = 0; i < all.size(); ++i) {
      Loading& of = *all[i];
      of.to.said = of.listener.end(*file.firsts[i]);
      if (!of.keeper) continue;
      of.keeper->end();
      const std::size_t bytes = of.kept.bytes();
      if (!has_room(bytes)) continue;
      bytes_ += bytes;
      of.to.kept = std::move(of.kept);
    }
  }

  bool has_room(std::size_t more) const {
    return bytes_ + shapes_[0]->bytes() + more <= most_bytes_;
  }

  // All get what each has loaded, with the shapes that it refers to.
  void share(std::vector<std::string> mine) {
    team::Archive pack;
    pack(*shapes_[0]);
    shapes_.clear();
    for (const std::string& bytes : traces.team->all_of(pack.take())) {
      team::Archive from(bytes);
      from(*shapes_.emplace_back(std::make_unique<ShapesOfLines>()));
    }
    team::share(*traces.team, files_.size(), std::move(mine),
                [&](std::size_t i, std::string_view bytes) {
                  files_.at(i).shapes = i % traces.team->size();
                  unpack(bytes, files_[i]);
                });
  }

  std::vector<OfFile> files_;
  std::unordered_map<const Process*, std::size_t> file_of_;
  std::function<void(std::size_t)> progress_;
  std::size_t most_bytes_;
  bool loaded_ = false;
  std::atomic<std::size_t> bytes_ = 0;
  std::vector<std::unique_ptr<ShapesOfLines>> shapes_;  // of each process of the team
  std::mutex mutex_;
};

Lines::Lines(const job::Job& job, const read::Traces& traces,
             const std::function<void(std::size_t)>& progress, std::size_t most_bytes)
    : store_(std::make_shared<Store>(job, traces, progress, most_bytes)), job_(&job) {}

Lines Lines::of(const job::Job& some) const {
  return of(some, chosen_);
}

Lines Lines::of(const job::Job& some, read::Chosen chosen) const {
  Lines lines = *this;
  lines.job_ = &some;
  lines.chosen_ = std::move(chosen);
  return lines;
}

const read::Traces& Lines::traces() const {
  return store_->traces;
}

const Said* Lines::said(const Process& rank) const {
  store_->load();
  const OfProcess* of = store_->process(rank);
  return of == nullptr ? nullptr : &of->said;
}

bool Lines::has_device_times(const Process& rank) const {
  store_->load();
  const OfProcess* of = store_->process(rank);
  return of != nullptr && of->device_times;
}

const std::vector<read::Skipped>& Lines::unreadable() const {
  return store_->unreadable;
}

std::vector<Lines::Ranks> Lines::units() const {
  store_->load();
  std::vector<Ranks> all;
  std::unordered_map<const void*, std::size_t> places;
  for (const Process* p : job_->processes) {
    if (store_->process(*p) == nullptr) continue;
    const auto [unit, fresh] = places.try_emplace(store_->together(*p), all.size());
    if (fresh) all.emplace_back();
    all[unit->second].push_back(p);
  }
  for (Ranks& ranks : all) std::ranges::sort(ranks, std::less());
  return all;
}

bool Lines::show(const Ranks& ranks, Reader reader) const {
  reader.lines.chosen = chosen_;
  reader.lines.wanted = [&](const Process& p) {
    return std::ranges::binary_search(ranks, &p, std::less());
  };
  try {
    store_->show(ranks, reader);
    for (const Process* p : ranks) reader.lines.end(*p);
    return true;
  } catch (const read::BadInput& e) {
    store_->cannot_read(e.what());
    return false;
  }
}

void Lines::in_parallel(std::size_t n, const std::function<void(std::size_t)>& f) {
  std::mutex mutex;
  std::exception_ptr error;
  read::in_parallel(n, [&](std::size_t i) {
    try {
      f(i);
    } catch (...) {
      const std::scoped_lock lock(mutex);
      if (!error) error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
}

}  // namespace tprof::run
