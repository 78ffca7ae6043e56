// What several readers want of the lines of a job, read together: a file is read once for all of
// them, and once more for what depends on that.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "collect/lines.h"

namespace tprof::collect {

class Passes {
 public:
  // `progress` gets the number of files done of the pass that runs, from any thread.
  Passes(const job::Job& job, const read::Traces& traces,
         std::function<void(std::size_t)> progress = {})
      : job_(job), traces_(traces), progress_(std::move(progress)) {}

  const job::Job& job() const { return job_; }

  // Of the next pass: `make` puts the collectors of a rank into its map; `take` gets what they
  // found, and may want more, of the pass behind.
  void want(Make make, std::function<void(const Lines&)> take) {
    wanted_.push_back({std::move(make), std::move(take)});
  }

  // One pass, for all that is wanted. False: nothing is.
  bool read();

 private:
  struct Reader {
    Make make;
    std::function<void(const Lines&)> take;
  };

  const job::Job& job_;
  const read::Traces& traces_;
  std::function<void(std::size_t)> progress_;
  std::vector<Reader> wanted_;
};

}  // namespace tprof::collect
