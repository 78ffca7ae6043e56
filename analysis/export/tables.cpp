#include "export/tables.h"

#include <sstream>

namespace tprof::trace_export {
namespace {

// Columns are of integers if nothing else is said.
std::vector<TableInfo::Column> columns(const char* text) {
  std::vector<TableInfo::Column> all;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t colon = word.find(':');
    all.push_back(
        {word.substr(0, colon), colon == std::string::npos ? "INTEGER" : word.substr(colon + 1)});
  }
  return all;
}

}  // namespace

const std::vector<TableInfo>& tables() {
  static const std::vector<TableInfo> kAll = {
      {"job",
       columns("tables_version tprof_version:TEXT run_id:TEXT attempt world_size base_time_ns "
               "clocks:TEXT steps_found:TEXT steps_whole chosen:TEXT"),
       {}},
      {"processes",
       columns("process rank world_size host:TEXT boot_id:TEXT pid device start_ns ended:TEXT "
               "calls_without_line ranges_without_line nccl_version cudart_version command:TEXT "
               "file:TEXT"),
       {"rank"}},
      {"threads", columns("process rank thread name:TEXT"), {"process, thread"}},
      {"communicators",
       columns("process rank comm id:TEXT name:TEXT nranks rank_in_comm device parent"),
       {"process, comm", "id"}},
      {"ledger",
       columns("process rank bucket:TEXT function:TEXT dtype:TEXT comm device host_memory:TEXT "
               "bytes_class mode:TEXT thread:TEXT calls count elements bytes host_ns host_ns_max "
               "device_timed device_ns device_ns_max exposure_known exposure_known_ns exposed_ns "
               "exposed_ns_max late failed unfinished"),
       {"function, rank"}},
      {"calls",
       columns("process rank thread bucket:TEXT function:TEXT comm seq peer reduce:TEXT dtype:TEXT "
               "count elements bytes device host_memory:TEXT stream outcome:TEXT ts_ns host_ns "
               "device_ts_ns device_ns device_calls step"),
       {"function, rank", "bucket", "process, ts_ns", "step"}},
      {"ranges",
       columns("process rank thread name:TEXT domain:TEXT category:TEXT category_number color:TEXT "
               "payload:NUMERIC elements bytes error:TEXT kind:TEXT ts_ns ns step"),
       {"name, rank", "process, thread, ts_ns"}},
      {"steps", columns("process rank step ts_ns ns"), {"step"}},
  };
  return kAll;
}

}  // namespace tprof::trace_export
