#include "export/other_nsys.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "export/json_text.h"
#include "export/nsys_tables.h"
#include "export/other_lines.h"
#include "read/error.h"
#include "read/json.h"

namespace tprof::trace_export {
namespace {

using Row = SqliteReader::Row;

// Kinds of NVTX_EVENTS.
constexpr std::int64_t kMark = 34;
constexpr std::int64_t kPushPop = 59;
constexpr std::int64_t kStartEnd = 60;
constexpr std::int64_t kDomain = 75;

// CUPTI's numbers.
std::string_view direction(std::int64_t kind) {
  constexpr std::string_view kNames[] = {"",     "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                         "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
  return kind > 0 && kind < std::ssize(kNames) ? kNames[kind] : "of an unknown kind";
}

// Of NVTX_EVENTS, else 0.
std::int64_t kind_of(const NsysTable& table, const NsysEvent& e) {
  return table.lane == NsysLane::ranges ? e.more[1].value_or(kPushPop) : 0;
}

bool shown(const NsysTable& table, const NsysEvent& e) {
  const std::int64_t kind = kind_of(table, e);
  return kind == 0 || kind == kMark || kind == kPushPop || kind == kStartEnd;
}

class NsysTrace : public OtherTrace {
 public:
  NsysTrace(const std::filesystem::path& file, std::optional<std::int64_t> pid);

  std::optional<std::int64_t> rank() const override { return std::nullopt; }
  std::int64_t begin_ns() const override { return begin_ns_; }
  const std::vector<align::Stay>& collectives() const override { return none_; }
  std::vector<std::string> missing() const override { return tables_.missing(); }
  void put(const Placement& to, std::size_t number, std::string& out,
           const std::function<void(std::string&)>& full) override;

 private:
  std::int64_t lane(const NsysTable& table, const NsysEvent& e, OtherLines& lines) const;
  void put(const NsysTable& table, const NsysEvent& e, OtherLines& lines) const;
  std::string args(const NsysTable& table, const NsysEvent& e) const;
  std::string name(const NsysTable& table, const NsysEvent& e) const;

  NsysTables tables_;
  bool of_one_;               // process
  std::int64_t zero_ns_ = 0;  // CLOCK_REALTIME where the session began
  std::int64_t begin_ns_ = std::numeric_limits<std::int64_t>::max();
  std::map<std::int64_t, std::string> threads_;                           // by serialized id
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> domains_;  // by pid and number
  std::vector<align::Stay> none_;
};

std::int64_t session_begin(const SqliteReader& db, const std::filesystem::path& file) {
  std::optional<std::int64_t> begin;
  if (db.columns("TARGET_INFO_SESSION_START_TIME").contains("utcEpochNs")) {
    db.each_row("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME LIMIT 1",
                [&](const Row& row) { begin = row.integer(0); });
  }
  if (!begin || *begin < 0 || *begin >= read::kLatestNs) {
    throw read::BadInput(file,
                         "nothing tells when its times begin: expected \"utcEpochNs\" in "
                         "TARGET_INFO_SESSION_START_TIME, as nsys exports it");
  }
  return *begin;
}

NsysTrace::NsysTrace(const std::filesystem::path& file, std::optional<std::int64_t> pid)
    : tables_(file, pid), of_one_(pid), zero_ns_(session_begin(tables_.db(), file)) {
  const SqliteReader& db = tables_.db();
  const auto columns = db.columns("ThreadNames");
  if (tables_.has_strings() && columns.contains("nameId") && columns.contains("globalTid")) {
    db.each_row(
        "SELECT globalTid, (SELECT value FROM StringIds WHERE id = nameId) FROM ThreadNames",
        [&](const Row& row) { threads_[row.integer(0).value_or(0)] = row.text(1); });
  }
  for (const NsysTable& table : nsys_tables()) {
    tables_.each_event(table, [&](const NsysEvent& e) {
      if (shown(table, e)) begin_ns_ = std::min(begin_ns_, zero_ns_ + e.begin_ns);
      if (table.lane == NsysLane::ranges && e.more[1] == kDomain) {
        domains_[{nsys_pid(e.global), e.more[2].value_or(0)}] = e.name;
      }
    });
  }
  if (begin_ns_ == std::numeric_limits<std::int64_t>::max()) {
    throw read::BadInput(file, "there is no event in it");
  }
}

std::string NsysTrace::name(const NsysTable& table, const NsysEvent& e) const {
  if (!e.name.empty()) return std::string(e.name);
  if (table.category == "gpu_memset") return "Memset";
  if (table.category == "gpu_memcpy") {
    return fmt::format("Memcpy {}", direction(e.more[2].value_or(0)));
  }
  return "(no name)";
}

std::string NsysTrace::args(const NsysTable& table, const NsysEvent& e) const {
  std::string text = "{";
  const auto add = [&](std::string_view key, std::string_view value) {
    text += fmt::format("{}\"{}\":{}", text.size() == 1 ? "" : ",", key, value);
  };
  for (std::size_t i = 0; i < e.args.size(); ++i) {
    if (e.args[i]) add(table.args[i], std::to_string(*e.args[i]));
  }
  if (table.lane == NsysLane::ranges && e.more[2].value_or(0) != 0) {
    const auto domain = domains_.find({nsys_pid(e.global), *e.more[2]});
    if (domain != domains_.end()) add("domain", json_text(domain->second));
  }
  return text + "}";
}

std::int64_t NsysTrace::lane(const NsysTable& table, const NsysEvent& e, OtherLines& lines) const {
  const std::int64_t pid = nsys_pid(e.global);
  // Where the processes are several, they are told apart.
  const std::string of = of_one_ ? "" : fmt::format(" of process {}", pid);
  if (table.lane == NsysLane::stream) {
    const std::int64_t device = e.more[0].value_or(0);
    const std::int64_t stream = e.more[1].value_or(0);
    return lines.named_lane(fmt::format("nsys: device {}, stream {}{}", device, stream, of));
  }
  const auto known = threads_.find(e.global);
  const std::string title = known == threads_.end() ? "" : fmt::format(" ({})", known->second);
  return lines.named_lane(fmt::format("nsys: {}thread {}{}{}",
                                      table.lane == NsysLane::ranges ? "NVTX of " : "",
                                      e.global & kNsysIdMask, title, of));
}

void NsysTrace::put(const NsysTable& table, const NsysEvent& e, OtherLines& lines) const {
  if (!shown(table, e)) return;
  const std::int64_t kind = kind_of(table, e);
  const std::int64_t at = lane(table, e, lines);
  const std::string args_text = args(table, e);
  const auto line = [&](std::string_view phase, std::int64_t ns) {
    lines.begin(table.category, phase, at);
    lines.at(zero_ns_ + ns);
    lines.field("name", json_text(name(table, e)));
    if (phase == "\"X\"") lines.duration(std::max(*e.end_ns - e.begin_ns, std::int64_t{0}));
    if (kind == kStartEnd) lines.id(std::to_string(e.row));
    if (kind == kMark) lines.field("s", "\"t\"");
    lines.field("args", args_text);
    lines.end();
  };
  if (kind == kMark) return line("\"i\"", e.begin_ns);
  if (kind == kStartEnd) {
    line("\"b\"", e.begin_ns);
    if (e.end_ns) line("\"e\"", *e.end_ns);
    return;
  }
  line(e.end_ns ? "\"X\"" : "\"B\"", e.begin_ns);
}

void NsysTrace::put(const Placement& to, std::size_t number, std::string& out,
                    const std::function<void(std::string&)>& full) {
  OtherLines lines(to, number, out, full);
  for (const NsysTable& table : nsys_tables()) {
    tables_.each_event(table, [&](const NsysEvent& e) { put(table, e, lines); });
  }
}

}  // namespace

NsysProcesses nsys_processes(const std::filesystem::path& file) {
  const SqliteReader db(file);
  std::set<std::int64_t> pids;
  for (const NsysTable& table : nsys_tables()) {
    if (!db.columns(table.name).contains(table.global)) continue;
    db.each_row(fmt::format("SELECT DISTINCT {0} >> {1} & {2} FROM {3} WHERE {0} IS NOT NULL",
                            table.global, kNsysPidBits, kNsysIdMask, table.name),
                [&](const Row& row) { pids.insert(row.integer(0).value_or(0)); });
  }
  NsysProcesses found{{pids.begin(), pids.end()}, ""};
  const auto columns = db.columns("TARGET_INFO_SYSTEM_ENV");
  if (columns.contains("name") && columns.contains("value")) {
    db.each_row("SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'Hostname'",
                [&](const Row& row) { found.host = row.text(0); });
  }
  return found;
}

std::unique_ptr<OtherTrace> open_nsys(const std::filesystem::path& file,
                                      std::optional<std::int64_t> pid) {
  return std::make_unique<NsysTrace>(file, pid);
}

}  // namespace tprof::trace_export
