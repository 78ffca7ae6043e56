#include "live/look.h"

#include "live/rank.h"
#include "read/error.h"

namespace tprof::live {

bool Look::over() const {
  return job && live::over(traces, job->processes);
}

// A rank file exists before its first line does, so a file that can't be read yet is looked at
// again.
Look look_at(const std::filesystem::path& folder, const job::Choice& choice, read::Wanted wanted) {
  if (!std::filesystem::is_directory(folder)) {
    throw read::BadInput(folder, "expected the folder of a job's rank files");
  }
  Look look;
  try {
    look.traces = read::load_all(
        read::trace_files({folder}), [](std::size_t) {}, wanted);
    job::join_ids(look.traces.traces);
    look.job = job::one_job(look.traces, choice);
  } catch (const read::BadInput& e) {
    look.why = e.what();
  }
  return look;
}

}  // namespace tprof::live
