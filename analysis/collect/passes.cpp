#include "collect/passes.h"

namespace tprof::collect {

bool Passes::read() {
  const std::vector<Reader> readers = std::exchange(wanted_, {});
  if (readers.empty()) return false;
  const std::vector<std::function<void()>> then = std::exchange(then_, {});
  shared_.clear();  // what was made for this pass; a reader that needs it longer has it
  const bool keep = std::exchange(keep_, false);
  const auto make = [&](const read::Process& rank, Collectors& all) {
    for (const Reader& reader : readers) reader.make(rank, all);
    if (keep) kept_.want(rank, all);
  };
  {
    const Lines lines =
        Lines::of_job(job_, traces_, make, progress_, chosen_, &read_before_, &kept_);
    for (const Reader& reader : readers) {
      if (traces_.team && reader.share) reader.share(*traces_.team);
    }
    for (const Reader& reader : readers) reader.take(lines);
  }
  for (const auto& what : then) what();
  return true;
}

}  // namespace tprof::collect
