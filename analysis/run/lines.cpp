#include "run/lines.h"

#include <atomic>
#include <cmath>
#include <exception>
#include <set>
#include <stdexcept>

#include "interpose/format/line_kinds.h"
#include "read/error.h"
#include "read/metadata.h"
#include "run/kept_lines.h"
#include "team/archive.h"
#include "text/text.h"

namespace tprof::run {

using read::Process;

struct LinesOfProcess {
  std::optional<KeptLines> kept{};  // nullopt: there was no room
  MetadataHistory history{};
  bool device_times = false;
};

struct LinesOfFile {
  const read::Trace* trace = nullptr;
  std::vector<LinesOfProcess>
      of{};  // by rank; what belongs to the whole process is at its first rank
  std::string unread{};
  std::exception_ptr error{};

  LinesOfProcess& process(const Process& p) {
    return of[static_cast<std::size_t>(&p - trace->processes.data()) - p.lane];
  }
  bool whole() const { return unread.empty() && !error; }
};

namespace {

// Metadata lines that visitors want; the rest is in MetadataHistory.
bool is_kept(std::string_view line) {
  return is_line(line, LineKind::step) || is_line(line, LineKind::site) ||
         is_line(line, LineKind::window) || is_line(line, LineKind::group);
}

// A file with one ledger has no history.
bool says_it_once(const read::Trace& trace) {
  return trace.metadata_read &&
         std::ranges::all_of(trace.processes, [](const Process& p) { return p.ledgers <= 1; });
}

std::string text_of(const std::exception_ptr& error) {
  if (!error) return "";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return *e.what() == '\0' ? "an error" : e.what();
  }
}

constexpr std::size_t kMaxDecreased = 8;

// In floating point, so that no value in a damaged file can overflow a sum.
ClockStep step_between(const read::Anchor& a, const read::Anchor& b) {
  const auto from_to = [](std::int64_t from, std::int64_t to) {
    return static_cast<double>(to) - static_cast<double>(from);
  };
  const double passed = from_to(a.ts_ns, b.ts_ns);
  const double step = from_to(a.realtime_ns, b.realtime_ns) - passed;
  // NTP slews by 500 ppm at most. An anchor is uncertain by its bracket, and sometimes by a
  // millisecond more.
  const double allowed =
      passed / 2000 + from_to(0, a.bracket_ns) / 2 + from_to(0, b.bracket_ns) / 2;
  if (passed >= 0 && std::abs(step) <= allowed + 1e6) return {};
  return {passed < 0 ? passed : step, a.realtime_ns, b.realtime_ns};
}

}  // namespace

class Store {
 public:
  Store(const job::Job& job, const read::Traces& from, std::function<void(std::size_t)> progress_of,
        std::size_t most_bytes)
      : traces(from), progress_(std::move(progress_of)), most_bytes_(most_bytes) {
    const std::set<const Process*> ours(job.processes.begin(), job.processes.end());
    for (const read::Trace& trace : traces.traces) {
      for (const Process& p : trace.processes) {
        if (ours.contains(&p)) file_of_.emplace(&p, files_.size());
      }
      const bool any =
          std::ranges::any_of(trace.processes, [&](const Process& p) { return ours.contains(&p); });
      if (any) files_.push_back({.trace = &trace});
    }
  }

  void load() {
    if (std::exchange(loaded_, true)) return;
    const std::size_t processes = traces.team ? traces.team->size() : 1;
    std::vector<std::vector<LinesOfFile*>> of(processes);  // by the process that loads them
    for (LinesOfFile& file : files_) of[file.trace->loaded_by].push_back(&file);
    for (std::size_t p = 1; p < processes; ++p) {
      std::vector<std::filesystem::path> paths;
      for (const LinesOfFile* file : of[p]) paths.push_back(file->trace->source.file);
      team::ask(*traces.team, p, team::Ask::lines, team::packed(paths, most_bytes_ / processes));
    }
    most_bytes_ /= processes;
    load(of[0], processes);
    for (std::size_t p = 1; p < processes; ++p) {
      const std::string answer = team::answer(*traces.team, p);
      team::Archive from(answer);
      for (LinesOfFile* file : of[p]) {
        std::string error;
        from(file->of, file->unread, error);
        if (!error.empty()) file->error = std::make_exception_ptr(std::runtime_error(error));
      }
    }
    for (const LinesOfFile& file : files_) {
      if (file.error) std::rethrow_exception(file.error);
      if (!file.unread.empty()) cannot_read(file.unread);
    }
  }

  // Loads everything for the team's first process.
  std::string packed() {
    std::vector<LinesOfFile*> all;
    for (LinesOfFile& file : files_) all.push_back(&file);
    load(all, 1);
    team::Archive pack;
    for (LinesOfFile& file : files_) {
      std::string error = text_of(file.error);
      pack(file.of, file.unread, error);
    }
    return pack.take();
  }

  void show(const Lines::Ranks& ranks, const read::LineReader& reader) {
    const Process& first = *ranks[0];
    const LinesOfFile& file = files_[file_of_.at(&first)];
    if (const LinesOfProcess* of = process(first); of->kept) {
      of->kept->show(*(&first - first.lane), reader);
      return;
    }
    read::LineReader again = reader;
    if (reader.metadata) {
      again.metadata = [&](const Process& p, const read::Line& line) {
        if (is_kept(line.text)) reader.metadata(p, line);
      };
    }
    read::read_lines(*file.trace, again);
  }

  // Null: its lines can't be read, or it is not in the job.
  LinesOfProcess* process(const Process& p) {
    const auto file = file_of_.find(&p);
    if (file == file_of_.end() || !files_[file->second].whole()) return nullptr;
    return &files_[file->second].process(p);
  }
  // Equal for ranks that are shown together.
  const void* together(const Process& p) {
    return process(p)->kept ? static_cast<const void*>(&p - p.lane)
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
    LinesOfProcess& to;
    KeptLines kept{};
    MetadataFollower follower{};
    std::optional<Keeper> keeper{};
    std::size_t lines = 0;
  };

  // `share`: how many processes load a similar number.
  void load(const std::vector<LinesOfFile*>& files, std::size_t share) {
    std::atomic<std::size_t> done{0};
    read::in_parallel(files.size(), [&](std::size_t i) {
      load(*files[i]);
      if (progress_) progress_(std::min(files_.size(), ++done * share));
    });
    progress_ = {};
  }

  // Stores what went wrong instead of throwing.
  void load(LinesOfFile& file) {
    file.of.resize(file.trace->processes.size());
    try {
      load_lines(file);
    } catch (const read::BadInput& e) {
      file.unread = e.what();
    } catch (...) {
      file.error = std::current_exception();
    }
    if (!file.whole()) file.of.clear();
  }

  void load_lines(LinesOfFile& file) {
    const read::Trace& trace = *file.trace;
    std::map<const LinesOfProcess*, Loading> all;
    for (const Process& p : trace.processes) {
      if (p.lane != 0) continue;
      Loading& of = all.try_emplace(&file.process(p), Loading{file.process(p)}).first->second;
      of.keeper.emplace(bytes_, of.kept);
    }
    const auto loading = [&](const Process& p) -> Loading& { return all.at(&file.process(p)); };
    const auto keep = [&](auto add) {
      return [this, &loading, add](const Process& p, const auto& line) {
        Loading& to = loading(p);
        if (!to.keeper) return;
        (to.keeper->of(p).*add)(line);
        if (++to.lines % 4096 != 0 || has_room(to.kept.bytes())) return;
        to.keeper.reset();
        to.kept = {};
      };
    };
    read::MetadataParser metadata(trace.source.file, trace.merged);
    const bool parse = !says_it_once(trace);
    read::read_lines(
        trace,
        {.event = keep(&Keeper::call),
         .launch = keep(&Keeper::launch),
         .last = keep(&Keeper::last_call),
         .range = keep(&Keeper::range),
         .device_time =
             [&, add = keep(&Keeper::device_time)](const Process& p, const read::DeviceTime& t) {
               loading(p).to.device_times = true;
               add(p, t);
             },
         .busy = keep(&Keeper::busy),
         .life = keep(&Keeper::life),
         .thread = keep(&Keeper::thread),
         .metadata =
             [&, add = keep(&Keeper::metadata)](const Process& p, const read::Line& line) {
               if (parse && p.lane == 0) metadata.line(line);
               const Process& so_far = parse ? metadata.processes().back() : p;
               if (p.lane == 0) loading(p).follower.metadata(line, so_far);
               if (is_kept(line.text)) add(p, line);
             }});
    for (const Process& p : trace.processes) {
      if (p.lane != 0) continue;
      Loading& of = loading(p);
      of.to.history = of.follower.end(p);
      if (!of.keeper) continue;
      of.keeper->end();
      const std::size_t bytes = of.kept.bytes();
      if (!has_room(bytes)) continue;
      bytes_ += bytes;
      of.to.kept = std::move(of.kept);
    }
  }

  bool has_room(std::size_t more) const { return bytes_ + more <= most_bytes_; }

  std::vector<LinesOfFile> files_;
  std::unordered_map<const Process*, std::size_t> file_of_;
  std::function<void(std::size_t)> progress_;
  std::size_t most_bytes_;
  bool loaded_ = false;
  std::atomic<std::size_t> bytes_ = 0;  // kept so far
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

const MetadataHistory* Lines::history(const Process& rank) const {
  store_->load();
  const LinesOfProcess* of = store_->process(rank);
  return of == nullptr ? nullptr : &of->history;
}

bool Lines::has_device_times(const Process& rank) const {
  store_->load();
  const LinesOfProcess* of = store_->process(rank);
  return of != nullptr && of->device_times;
}

int work_for(team::Team& team) {
  read::Traces mine;
  const auto lines = [&](std::string_view asked) {
    std::vector<std::filesystem::path> files;
    std::size_t most_bytes = 0;
    team::unpack(asked, files, most_bytes);
    job::Job of_all;
    for (const read::Trace& trace : mine.traces) {
      if (std::ranges::find(files, trace.source.file) == files.end()) continue;
      for (const Process& p : trace.processes) of_all.processes.push_back(&p);
    }
    return Store(of_all, mine, {}, most_bytes).packed();
  };
  for (;;) {
    const std::string asked = team.receive(0);
    const std::string_view details = std::string_view(asked).substr(1);
    const auto what = static_cast<team::Ask>(asked[0]);
    if (what == team::Ask::end) return text::number<int>(details).value_or(0);
    std::string answer = ".";
    try {
      answer += what == team::Ask::files ? read::load_share(team, details, mine) : lines(details);
    } catch (const std::exception& e) {
      answer = std::string("!") + e.what();
    }
    team.send(0, answer);
  }
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

bool Lines::show(const Ranks& ranks, read::LineReader reader) const {
  reader.chosen = chosen_;
  reader.wanted = [&](const Process& p) {
    return std::ranges::binary_search(ranks, &p, std::less());
  };
  try {
    store_->show(ranks, reader);
    for (const Process* p : ranks) reader.end(*p);
    return true;
  } catch (const read::BadInput& e) {
    store_->cannot_read(e.what());
    return false;
  }
}

void ClockStep::keep_larger(const ClockStep& other) {
  if (std::abs(other.size_ns) > std::abs(size_ns)) *this = other;
}

void MetadataFollower::metadata(const read::Line& line, const read::Process& so_far) {
  const std::vector<read::Anchor>& clock = so_far.header.clock;
  for (; anchors_ < clock.size(); ++anchors_) {
    if (anchors_ != 0) {
      history_.clock_step.keep_larger(step_between(clock[anchors_ - 1], clock[anchors_]));
    }
  }
  if (!is_line(line.text, LineKind::ledger)) return;
  if (before_ && so_far.ledger) compare(*so_far.ledger, line.offset);
  before_ = so_far.ledger;
  last_ = std::pair<std::string, std::uint64_t>();
  if (line.text.find("\"scopes\"") != std::string_view::npos)
    last_ = std::pair(std::string(line.text), line.offset);
}

MetadataHistory MetadataFollower::end(const read::Process& rank) {
  if (rank.lane == 0 && !last_.first.empty()) {
    const read::Line line{last_.first, last_.second};
    history_.scopes = read::parsed_line<read::ScopesOfLedger>(line, rank.file).scopes;
  }
  return std::move(history_);
}

void MetadataFollower::compare(const read::Ledger& now, std::uint64_t offset) {
  std::map<Decreased::Counted, std::uint64_t> counts;
  const auto each = [](const read::Ledger& ledger, const auto& see) {
    for (const read::Collectives& c : ledger.collectives) {
      see(Decreased::Counted{.comm = c.comm}, c.count);
    }
    for (const read::Row& r : ledger.rows) {
      see(Decreased::Counted{r.name, r.dtype, r.comm.value_or(-1), r.bytes_class, r.mode},
          r.amounts.calls);
    }
  };
  each(now, [&](const Decreased::Counted& what, std::uint64_t n) { counts[what] += n; });
  each(*before_, [&](const Decreased::Counted& what, std::uint64_t n) {
    if (n <= counts[what] || history_.decreased.size() == kMaxDecreased) return;
    history_.decreased.push_back({offset, what, counts[what], n});
  });
}

}  // namespace tprof::run
