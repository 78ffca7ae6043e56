#include "report/operations.h"

#include <map>
#include <tuple>
#include <utility>

#include "report/cells.h"
#include "report/times.h"

namespace tprof::report {
namespace {

using read::Amounts;
using text::bytes;
using text::duration;
using text::printable;
using text::Table;
using text::thousands;

struct OpRow {
  Amounts amounts;
  double bus_bytes = 0;  // bytes x bus factor
  bool bus = true;
};

// Returns what stands beside the operation, as a sort key and as text.
std::pair<std::int64_t, std::string> cell(const stats::OpKey& key, Beside beside) {
  switch (beside) {
    case Beside::size:
      return {key.bytes_class, diagnose::size_class(key.bytes_class)};
    case Beside::communicator:
      return {-key.nranks, key.comm_id.empty() ? "-" : printable(key.comm_id)};
    case Beside::dtype:
      return {0, printable(key.dtype)};
    case Beside::nothing:
      break;
  }
  return {0, ""};
}

const char* title(Beside beside) {
  switch (beside) {
    case Beside::size:
      return "size";
    case Beside::communicator:
      return "communicator";
    case Beside::dtype:
      return "dtype";
    case Beside::nothing:
      break;
  }
  return "";
}

}  // namespace

std::string operation_table(const stats::Summary& s, Beside beside) {
  std::map<std::tuple<Bucket, std::string, std::pair<std::int64_t, std::string>>, OpRow> rows;
  bool timed = false;
  for (const auto& [key, amounts] : s.ops) {
    if (amounts.calls == 0) continue;
    OpRow& row = rows[{key.bucket, key.name, cell(key, beside)}];
    row.amounts += amounts;
    const auto busbw = stats::busbw(key, amounts);
    row.bus = row.bus && (busbw || amounts.device_timed == 0);
    row.bus_bytes += busbw.value_or(0) * static_cast<double>(amounts.device_ns);
    timed = timed || amounts.device_timed != 0;
  }
  Columns all = columns("ll", {"bucket", "operation"});
  if (beside != Beside::nothing) all.emplace_back(title(beside), Table::Align::left);
  const auto add = [&](const Columns& more) { all.insert(all.end(), more.begin(), more.end()); };
  add(columns("rrr", {"calls", "elements", "bytes"}));
  if (timed) {
    add(columns("rrrrrrr", {"timed", "mean device", "max device", "exposed", "algbw GB/s",
                            "busbw GB/s", "mean host"}));
  } else {
    add(columns("rr", {"mean host", "max host"}));
  }
  Table table(all);
  for (const auto& [key, row] : rows) {
    const Amounts& a = row.amounts;
    std::vector<std::string> cells = {std::string(bucket_name(std::get<0>(key))),
                                      printable(std::get<1>(key))};
    if (beside != Beside::nothing) cells.push_back(std::get<2>(key).second);
    cells.insert(cells.end(), {thousands(a.calls), thousands(a.elements), bytes(a.bytes)});
    if (!timed) {
      cells.insert(cells.end(), {mean_host(a), longest(a.host_ns_max)});
    } else if (const auto algbw = stats::algbw(a)) {
      const double ns = static_cast<double>(a.device_ns);
      cells.insert(cells.end(),
                   {thousands(a.device_timed), duration(a.device_ns / a.device_timed),
                    longest(a.device_ns_max), exposed(a), fmt::format("{:.2f}", *algbw),
                    row.bus ? fmt::format("{:.2f}", row.bus_bytes / ns) : "-", mean_host(a)});
    } else {
      cells.insert(cells.end(), {thousands(a.device_timed), "-", "-", "-", "-", "-", mean_host(a)});
    }
    table.row(std::move(cells));
  }
  std::string out = table.str();
  if (!timed && !rows.empty()) {
    out +=
        "  No algbw and busbw: they need the device time of a call; the host time is only that of "
        "enqueueing it.\n";
  }
  return out;
}

}  // namespace tprof::report
