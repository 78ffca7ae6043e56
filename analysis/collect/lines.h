// One pass over the lines of each rank, and what its readers keep of it: in memory that does not
// grow with the number of lines.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <typeindex>
#include <utility>
#include <vector>

#include "job/jobs.h"
#include "read/events.h"
#include "read/folder.h"
#include "team/archive.h"

namespace tprof::collect {

// Sees the lines of one rank in their order and keeps what its diagnosis needs, bounded: a damaged
// file may hold any number of anything. Several ranks are read at a time, each with its own.
class Collector {
 public:
  explicit Collector(const read::Process& rank) : rank_(rank) {}
  virtual ~Collector() = default;

  virtual void call(const read::Event&) {}    // returned, failed or still open
  virtual void launch(const read::Event&) {}  // of a graph
  // The rank's last call, whether or not it has a line of its own.
  virtual void last_call(const read::Event&) {}
  // Every line of one: they are looked at for a collector that wants them only.
  virtual void range(const read::Range&) {}
  virtual bool wants_ranges() const { return false; }
  virtual void open_range(const read::Range&) {}  // pushed, and not popped
  // The device's times of calls, before or behind their lines; as with ranges.
  virtual void device_time(const read::DeviceTime&) {}
  virtual bool wants_times() const { return false; }
  // When the rank's devices computed, in the order of time for each; as with ranges.
  virtual void busy(const read::Busy&) {}
  virtual bool wants_busy() const { return false; }
  virtual void life(const read::LifeCall&) {}      // of communicators
  virtual void thread(const read::ThreadName&) {}  // before or behind its calls
  // Any other line; as with ranges. And what these have said so far, for a collector that wants
  // that.
  virtual void metadata(const read::Line&, const read::Process& /*so_far*/) {}
  virtual bool wants_metadata() const { return false; }
  virtual bool wants_so_far() const { return false; }
  // After the rank's last line: the place to reduce what was kept of them, as other ranks follow.
  virtual void end() {}
  // After the rank's file was read without an error, and before any other rank's: the place to add
  // to what is kept of all ranks together. Ranks come in no order.
  virtual void hand_over() {}
  // True if nobody asks for it after that: it goes then, as there are as many of these as ranks.
  virtual bool is_done() const { return false; }
  // Packs or unpacks what is there after end(): one process may have read the file, and all hand
  // over. Anything that it filled elsewhere while it saw the lines is in it too.
  virtual void state(team::Archive&) = 0;

 protected:
  const read::Process& rank_;
};

// One collector of each type. There are few types and as many of these as ranks.
class Collectors {
 public:
  using Entry = std::pair<std::type_index, std::unique_ptr<Collector>>;

  const Collector* find(std::type_index type) const {
    const auto found = std::ranges::find(all_, type, &Entry::first);
    return found == all_.end() ? nullptr : found->second.get();
  }
  // Calls make() for one if there is none of the type.
  template <typename M>
  void add(std::type_index type, const M& make) {
    if (find(type) == nullptr) all_.emplace_back(type, make());
  }
  void shrink_to_fit() { all_.shrink_to_fit(); }  // no more will come
  void hand_over() {
    for (auto& [type, collector] : all_) collector->hand_over();
    std::erase_if(all_, [](const Entry& of) { return of.second->is_done(); });
    all_.shrink_to_fit();
  }
  bool empty() const { return all_.empty(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  std::vector<Entry> all_;
};

// Those that a diagnosis names, for one rank; of a type that several name there is one.
template <typename... C>
void want(const read::Process& rank, Collectors& all) {
  (all.add(typeid(C), [&] { return std::make_unique<C>(rank); }), ...);
}

// One that is made with arguments beside the rank.
template <typename C, typename First, typename... Args>
void want(const read::Process& rank, Collectors& all, First&& first, Args&&... args) {
  all.add(typeid(C), [&] {
    return std::make_unique<C>(rank, std::forward<First>(first), std::forward<Args>(args)...);
  });
}

// The same, by what they want.
struct Wanting {
  explicit Wanting(const Collectors& collectors);

  std::vector<Collector*> all{};
  std::vector<Collector*> ranges{};
  std::vector<Collector*> times{};
  std::vector<Collector*> busy{};
  std::vector<Collector*> metadata{};
};

// Puts the collectors of a rank into its map.
using Make = std::function<void(const read::Process&, Collectors&)>;

// Files of which every line of metadata was read before, without an error.
using ReadBefore = std::set<const read::Trace*>;

class KeptOfJob;

// Everything that was collected, by rank.
class Lines {
 public:
  // Null: its lines were not read, or nobody wanted this of it.
  template <typename C>
  const C* of(const read::Process* rank) const {
    const auto of_rank = ranks_.find(rank);
    if (of_rank == ranks_.end()) return nullptr;
    return static_cast<const C*>(of_rank->second.find(typeid(C)));
  }

  // Files with a line that can't be read, and why: there is nothing else of them.
  const std::vector<read::Skipped>& unreadable() const { return unreadable_; }

  // Reads the lines of all ranks of a job, several files at a time. `progress` gets the number of
  // files done, from any thread. The processes of a team read a share of them each, and all have
  // the same in the end. Those that are read now are added to `before`. Lines that were `kept`
  // of a file are taken from there instead.
  static Lines of_job(const job::Job& job, const read::Traces& traces, const Make& make,
                      const std::function<void(std::size_t)>& progress = {},
                      const read::Chosen& chosen = {}, ReadBefore* before = nullptr,
                      KeptOfJob* kept = nullptr);

 private:
  std::map<const read::Process*, Collectors> ranks_;
  std::vector<read::Skipped> unreadable_;
};

}  // namespace tprof::collect
