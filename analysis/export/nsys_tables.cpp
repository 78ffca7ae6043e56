#include "export/nsys_tables.h"

#include <fmt/format.h>

#include "read/error.h"
#include "read/json.h"

namespace tprof::trace_export {

const std::vector<NsysTable>& nsys_tables() {
  static const std::vector<NsysTable> all = {
      {"CUPTI_ACTIVITY_KIND_KERNEL",
       "kernel",
       NsysLane::stream,
       "globalPid",
       {"demangledName", "shortName"},
       {"deviceId", "streamId"},
       {"correlationId", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"}},
      {"CUPTI_ACTIVITY_KIND_MEMCPY",
       "gpu_memcpy",
       NsysLane::stream,
       "globalPid",
       {},
       {"deviceId", "streamId", "copyKind"},
       {"correlationId", "bytes", "copyKind"}},
      {"CUPTI_ACTIVITY_KIND_MEMSET",
       "gpu_memset",
       NsysLane::stream,
       "globalPid",
       {},
       {"deviceId", "streamId"},
       {"correlationId", "bytes", "value"}},
      {"CUPTI_ACTIVITY_KIND_RUNTIME",
       "cuda_runtime",
       NsysLane::thread,
       "globalTid",
       {"nameId"},
       {},
       {"correlationId", "returnValue"}},
      {"NVTX_EVENTS",
       "nvtx",
       NsysLane::ranges,
       "globalTid",
       {"textId"},
       {"text", "eventType", "domainId"}},
  };
  return all;
}

NsysTables::NsysTables(const std::filesystem::path& file, std::optional<std::int64_t> pid)
    : file_(file), db_(file), pid_(pid) {
  for (const NsysTable& table : nsys_tables()) columns_[table.name] = db_.columns(table.name);
  const auto strings = db_.columns("StringIds");
  strings_ = strings.contains("id") && strings.contains("value");
}

std::vector<std::string> NsysTables::missing() const {
  std::vector<std::string> missing;
  for (const NsysTable& table : nsys_tables()) {
    if (columns_.at(table.name).empty()) {
      missing.emplace_back(table.name);
      continue;
    }
    std::set<std::string_view> wanted = {"start", "end", table.global};
    for (const auto* some : {&table.names, &table.more, &table.args}) {
      wanted.insert(some->begin(), some->end());
    }
    for (const std::string_view column : wanted) {
      if (!here(table, column)) missing.push_back(fmt::format("{}.{}", table.name, column));
    }
  }
  if (!strings_) missing.emplace_back("StringIds");
  return missing;
}

std::string NsysTables::select(const NsysTable& table) const {
  const auto column = [&](std::string_view c) {
    return here(table, c) ? fmt::format("\"{}\"", c) : std::string("NULL");
  };
  std::string names = here(table, "text") ? "text" : "NULL";
  for (const std::string_view c : table.names) {
    if (strings_ && here(table, c)) {
      names += fmt::format(", (SELECT value FROM StringIds WHERE id = {}.{})", table.name, c);
    }
  }
  std::string sql =
      fmt::format("SELECT {}, \"start\", \"end\", COALESCE({}, NULL)", table.global, names);
  for (const auto* some : {&table.more, &table.args}) {
    for (const std::string_view c : *some) sql += ", " + column(c);
  }
  sql += fmt::format(" FROM {} WHERE \"start\" IS NOT NULL AND {} IS NOT NULL", table.name,
                     table.global);
  if (pid_)
    sql += fmt::format(" AND ({} >> {} & {}) = {}", table.global, kNsysPidBits, kNsysIdMask, *pid_);
  return sql;
}

void NsysTables::each_event(const NsysTable& table,
                            const std::function<void(const NsysEvent&)>& f) const {
  if (!here(table, "start") || !here(table, "end") || !here(table, table.global)) return;
  const auto time = [&](std::optional<std::int64_t> ns) {
    if (ns && (*ns > read::kLatestNs / 4 || *ns < -read::kLatestNs / 4)) {
      throw read::BadInput(file_, fmt::format("{} has a time that can't be", table.name));
    }
    return ns;
  };
  NsysEvent e;
  e.more.resize(table.more.size());
  e.args.resize(table.args.size());
  db_.each_row(select(table), [&](const SqliteReader::Row& row) {
    ++e.row;
    e.global = row.integer(0).value_or(0);
    const auto begin = time(row.integer(1));
    if (!begin) return;
    e.begin_ns = *begin;
    e.end_ns = time(row.integer(2));
    e.name = row.text(3);
    int next = 4;
    for (auto& value : e.more) value = row.integer(next++);
    for (auto& value : e.args) value = row.integer(next++);
    f(e);
  });
}

}  // namespace tprof::trace_export
