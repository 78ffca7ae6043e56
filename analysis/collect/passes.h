// Reads the lines of a job for several readers together: each file once for all of them, and once
// more for those that depend on what was found.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <typeindex>
#include <utility>
#include <vector>

#include "collect/kept_lines.h"
#include "collect/lines.h"

namespace tprof::collect {

class Passes {
 public:
  // `progress` gets the number of files done of the pass that runs, from any thread. `chosen` marks
  // the calls that were asked for: readers get all.
  Passes(const job::Job& job, const read::Traces& traces,
         std::function<void(std::size_t)> progress = {}, read::Chosen chosen = {})
      : job_(job), traces_(traces), progress_(std::move(progress)), chosen_(std::move(chosen)) {}

  const job::Job& job() const { return job_; }
  const read::Traces& traces() const { return traces_; }

  // Takes part in the next pass. `make` puts the collectors of a rank into its map. `take` gets
  // what they found, and may want more from the pass after it.
  // `share`, for what collectors fill together: exchanges that with the other processes of a team.
  void want(Make make, std::function<void(const Lines&)> take,
            std::function<void(team::Team&)> share = {}) {
    wanted_.push_back({std::move(make), std::move(take), std::move(share)});
  }

  // To be done behind the next pass, when nothing of its lines is left but what was taken.
  void then(std::function<void()> what) { then_.push_back(std::move(what)); }

  // Several readers of the next pass share this; make() makes it for the first that asks.
  template <typename T, typename M>
  std::shared_ptr<T> shared(const M& make) {
    const auto place = shared_.find(typeid(T));
    if (place != shared_.end()) return std::static_pointer_cast<T>(place->second);
    std::shared_ptr<T> made = make();
    shared_.emplace(typeid(T), made);
    return made;
  }

  // Says that the next pass has one behind it, which is spared the lines' text.
  void keep_lines() { keep_ = true; }

  // Makes one pass for all that is wanted. Returns false if nothing is.
  bool read();

 private:
  struct Reader {
    Make make;
    std::function<void(const Lines&)> take;
    std::function<void(team::Team&)> share;
  };

  const job::Job& job_;
  const read::Traces& traces_;
  std::function<void(std::size_t)> progress_;
  read::Chosen chosen_;
  std::vector<Reader> wanted_;
  std::vector<std::function<void()>> then_;
  ReadBefore read_before_;
  KeptOfJob kept_;
  bool keep_ = false;
  std::map<std::type_index, std::shared_ptr<void>> shared_;
};

}  // namespace tprof::collect
