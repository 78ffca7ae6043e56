// Writes the collectives of a rank as NCCL's Inspector does (plugins/profiler/inspector, format
// v4.0), one JSON object each.
#pragma once

#include <map>

#include "export/rank_files.h"

namespace tprof::trace_export {

// The number of hosts that the ranks of each communicator are on, for communicators of which the
// job has all ranks.
using Hosts = std::map<std::pair<std::string, std::int64_t>, std::size_t>;
Hosts hosts_of_communicators(const job::Job& job);

class InspectorLog : public RankFormat {
 public:
  InspectorLog(const Exported& of, const Hosts& hosts, const std::vector<const read::Process*>& all)
      : of_(of), hosts_(hosts), rank_(all.front()->header.rank.value_or(0)) {}

  std::string file_name() const override;
  void call(const read::Process& process, const read::Event& e, const read::DeviceTime* t,
            std::string& out) override;
  std::uint64_t timed() const override { return timed_; }

 private:
  const Exported& of_;
  const Hosts& hosts_;
  std::int64_t rank_;
  std::uint64_t timed_ = 0;
};

}  // namespace tprof::trace_export
