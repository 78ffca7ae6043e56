// The lines of a job. They are loaded once, on first use, and shown to everyone who wants them.
//
// A visitor is a plain struct with a function for each kind of line that it wants: call, launch,
// last_call, range, device_time, busy, life, thread, metadata. Each takes the line as in
// read/events.h. end() comes after the rank's last line, to reduce what was collected. timed(call,
// time) gets each call with its time on the device, or null, as soon as both are known.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "job/jobs.h"
#include "read/events.h"
#include "read/folder.h"
#include "read/lines.h"
#include "read/parallel.h"
#include "read/process.h"
#include "read/told_lines.h"
#include "run/timed_calls.h"

namespace tprof::run {

// Keeps the history of a process's metadata: everything else knows only its last state.

// A count that decreased. Ledgers are cumulative, so such a file contradicts itself.
struct Decreased {
  struct Counted {
    std::string function{};  // empty: all collectives of the communicator
    std::string dtype{};
    std::int64_t comm = -1;  // -1: none
    std::int64_t bytes_class = 0;
    Mode mode = Mode::direct;

    // clang-tidy 14 takes the 0 of a rewritten comparison for a pointer.
    auto operator<=>(const Counted&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  std::uint64_t offset = 0;  // of the ledger
  Counted what{};
  std::uint64_t now = 0;
  std::uint64_t before = 0;
};

// How far a host's wall clock was set between two anchors.
struct ClockStep {
  double size_ns = 0;  // signed; 0: none
  std::int64_t after_ns = 0;
  std::int64_t before_ns = 0;

  void keep_larger(const ClockStep& other);
};

struct MetadataHistory {
  std::vector<Decreased> decreased{};
  ClockStep clock_step{};  // the largest
  // The program's scopes as of the last ledger, exact even without lines. If a process holds
  // several ranks, its first rank has them.
  std::vector<read::ScopeTotal> scopes{};
};

// Follows the metadata lines of one rank in order.
class MetadataFollower {
 public:
  // `so_far`: the process as of this line.
  void metadata(const read::Line& line, const read::Process& so_far);
  // Throws BadInput for a ledger whose scopes can't be read.
  MetadataHistory end(const read::Process& rank);

 private:
  void compare(const read::Ledger& now, std::uint64_t offset);

  MetadataHistory history_;
  std::optional<read::Ledger> before_;
  std::size_t anchors_ = 0;                     // seen so far
  std::pair<std::string, std::uint64_t> last_;  // the last ledger with scopes, and its offset
};

// A visitor with its rank.
template <typename Made>
struct Shown {
  const read::Process& rank;
  Made made;
  bool has_times = false;
  TimedCalls timed{has_times, [this](const read::Event& e, const read::DeviceTime* t) {
                     if constexpr (requires { made.timed(e, t); }) made.timed(e, t);
                   }};
  bool ended = false;

  void end() {
    if (std::exchange(ended, true)) return;
    timed.finish();
    if constexpr (requires { made.end(); }) made.end();
  }
};

// The visitors by rank.
template <typename Made>
class ByRank {
 public:
  // Returns null if the rank's lines were not wanted, or not readable.
  Made* of(const read::Process* rank) const {
    const auto shown = all_.find(rank);
    return shown == all_.end() ? nullptr : &shown->second->made;
  }
  void add(std::unique_ptr<Shown<Made>> shown) {
    const read::Process* rank = &shown->rank;
    all_.emplace(rank, std::move(shown));
  }

 private:
  std::unordered_map<const read::Process*, std::unique_ptr<Shown<Made>>> all_;
};

// make(rank) returns a visitor, maybe in an optional.
template <typename Make>
using Returned = std::remove_cvref_t<std::invoke_result_t<const Make&, const read::Process&>>;
template <typename T>
struct Unwrapped {
  using Type = T;
};
template <typename T>
struct Unwrapped<std::optional<T>> {
  using Type = T;
};
template <typename Make>
using MadeBy = typename Unwrapped<Returned<Make>>::Type;

template <typename Made>
Shown<Made>& shown_to(const std::vector<std::unique_ptr<Shown<Made>>>& all,
                      const read::Process& rank) {
  const auto by_rank = [](const auto& shown) { return &shown->rank; };
  return **(all.size() == 1 ? all.begin()
                            : std::ranges::lower_bound(all, &rank, std::less(), by_rank));
}

// Sends lines of one kind to the visitors, if they take them.
template <typename Made, typename Line, typename See>
void connect(const std::vector<std::unique_ptr<Shown<Made>>>& all,
             std::function<void(const read::Process&, const Line&)>& to, const See& see) {
  if constexpr (std::is_invocable_v<See, Made&, const Line&>) {
    to = [&all, see](const read::Process& rank, const Line& line) {
      see(shown_to(all, rank).made, line);
    };
  }
}

template <typename Made>
read::LineReader reader_of(const std::vector<std::unique_ptr<Shown<Made>>>& all) {
  read::LineReader of;
  connect(all, of.event, [](auto& c, const auto& l) -> decltype(c.call(l)) { c.call(l); });
  connect(all, of.launch, [](auto& c, const auto& l) -> decltype(c.launch(l)) { c.launch(l); });
  connect(all, of.last, [](auto& c, const auto& l) -> decltype(c.last_call(l)) { c.last_call(l); });
  connect(all, of.range, [](auto& c, const auto& l) -> decltype(c.range(l)) { c.range(l); });
  connect(all, of.device_time,
          [](auto& c, const auto& l) -> decltype(c.device_time(l)) { c.device_time(l); });
  connect(all, of.busy, [](auto& c, const auto& l) -> decltype(c.busy(l)) { c.busy(l); });
  connect(all, of.life, [](auto& c, const auto& l) -> decltype(c.life(l)) { c.life(l); });
  connect(all, of.thread, [](auto& c, const auto& l) -> decltype(c.thread(l)) { c.thread(l); });
  connect(all, of.metadata,
          [](auto& c, const auto& l) -> decltype(c.metadata(l)) { c.metadata(l); });
  if constexpr (requires(Made & of, const read::Event& e) { of.timed(e, nullptr); }) {
    of.event = [&all, also = std::move(of.event)](const read::Process& rank, const read::Event& e) {
      if (also) also(rank, e);
      shown_to(all, rank).timed.call(e);
    };
    of.device_time = [&all, also = std::move(of.device_time)](const read::Process& rank,
                                                              const read::DeviceTime& t) {
      if (also) also(rank, t);
      shown_to(all, rank).timed.time(t);
    };
  }
  return of;
}

class Store;

// The lines of some ranks of a job. This is a handle: copies share the lines.
class Lines {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 30;

  // Refers to the job and the traces. During loading, `progress` gets the number of finished files,
  // from any thread; afterwards it is released. Lines take `most_bytes` at most: ranks beyond that
  // are read again each time. Each process of a team loads the lines of the files it has read.
  Lines(const job::Job& job, const read::Traces& traces,
        const std::function<void(std::size_t)>& progress = {}, std::size_t most_bytes = kMostBytes);

  // Returns the lines of some of the job's ranks. Refers to `some`.
  Lines of(const job::Job& some) const;
  // Visitors get all calls; those that pass `chosen` are marked.
  Lines of(const job::Job& some, read::Chosen chosen) const;

  const job::Job& job() const { return *job_; }
  const read::Traces& traces() const;
  // Returns the counts of a rank's chosen calls; without a choice, those of its ledger.
  const read::Rows& rows(const read::Process& rank) const {
    return chosen_.rows ? chosen_.rows(rank) : read::rows_of(rank);
  }

  // Shows each rank's lines to the visitor that make(rank) returns, if that is no empty optional.
  template <typename Make>
  ByRank<MadeBy<Make>> each(const Make& make) const {
    ByRank<MadeBy<Make>> all;
    show(make, [&](auto shown) { all.add(std::move(shown)); });
    return all;
  }
  template <typename Made>
  ByRank<Made> each() const {
    return each([](const read::Process& rank) { return Made(rank); });
  }
  // The same without keeping the visitors of all ranks: calls take(visitor) in the order of ranks.
  template <typename Make, typename Take>
  void each(const Make& make, const Take& take) const {
    show(make, [&](auto shown) { take(shown->made); });
  }

  // Loads the lines, too. Null: the rank's lines can't be read.
  const MetadataHistory* history(const read::Process& rank) const;
  bool has_device_times(const read::Process& rank) const;
  // Files in which a line could not be read so far, and why.
  const std::vector<read::Skipped>& unreadable() const;

 private:
  friend class Store;
  using Ranks = std::vector<const read::Process*>;  // by address

  // The ranks that one thread shows together: those of one process, or of a file that is read
  // again.
  std::vector<Ranks> units() const;
  // Returns false if the file can't be read.
  bool show(const Ranks& ranks, read::LineReader reader) const;

  template <typename Make, typename Take>
  void show(const Make& make, const Take& take) const {
    using All = std::vector<std::unique_ptr<Shown<MadeBy<Make>>>>;
    const std::vector<Ranks> all = units();
    std::mutex mutex;
    std::map<std::size_t, All> ready;  // finished before an earlier unit
    std::size_t next = 0;
    read::in_parallel(all.size(), [&](std::size_t i) {
      All of;
      Ranks ranks;
      for (const read::Process* p : all[i]) {
        if constexpr (!std::is_same_v<Returned<Make>, MadeBy<Make>>) {
          auto made = make(*p);
          if (!made) continue;
          of.emplace_back(new Shown<MadeBy<Make>>{*p, *std::move(made), has_device_times(*p)});
        } else {
          of.emplace_back(new Shown<MadeBy<Make>>{*p, make(*p), has_device_times(*p)});
        }
        ranks.push_back(p);
      }
      read::LineReader reader = reader_of(of);
      reader.end = [&of](const read::Process& rank) {
        (*std::ranges::find(of, &rank, [](const auto& shown) { return &shown->rank; }))->end();
      };
      if (!of.empty() && !show(ranks, std::move(reader))) of.clear();
      const std::scoped_lock lock(mutex);
      ready.emplace(i, std::move(of));
      for (auto at = ready.begin(); at != ready.end() && at->first == next; ++next) {
        for (auto& shown : at->second) take(std::move(shown));
        at = ready.erase(at);
      }
    });
  }

  std::shared_ptr<Store> store_;
  const job::Job* job_;
  read::Chosen chosen_{};
};

// Serves the first process of the team. Returns the exit code.
int work_for(team::Team& team);

}  // namespace tprof::run
