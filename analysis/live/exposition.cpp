#include <fmt/format.h>

#include <array>
#include <map>
#include <tuple>

#include "live/table.h"
#include "text/text.h"

namespace tprof::live {
namespace {

// Returns a label's value, quoted.
std::string label(std::string_view value) {
  std::string out = "\"";
  for (const char c : text::printable(value)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string seconds(std::uint64_t ns) {
  return fmt::format("{}.{:09}", ns / 1'000'000'000, ns % 1'000'000'000);
}

void begin(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  out += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

// Forked children have the rank of the process that forked them, so figures of equal keys are added
// up.
using Key = std::tuple<std::string, Bucket, std::string>;  // rank, bucket, operation
using Operations = std::map<Key, read::Amounts>;

Operations operations_of(const std::vector<Rank>& ranks) {
  Operations all;
  for (const Rank& rank : ranks) {
    tables::each_row(*rank.process, [&](const read::Row& row) {
      all[{rank.name(), row.bucket, row.name}] += row.amounts;
    });
  }
  return all;
}

struct Counter {
  const char* name;
  const char* help;
  std::uint64_t read::Amounts::*amount;
  bool seconds = false;
  bool timed = false;  // only of operations that were timed on the device
};
constexpr std::array kCounters = {
    Counter{"tprof_calls_total", "Calls that the library accepted.", &read::Amounts::calls},
    Counter{"tprof_elements_total", "Elements, as nccl-tests counts them.",
            &read::Amounts::elements},
    Counter{"tprof_bytes_total", "Bytes of these elements.", &read::Amounts::bytes},
    Counter{"tprof_host_seconds_total", "Time in the calls on the host, which enqueue the work.",
            &read::Amounts::host_ns, true},
    Counter{"tprof_device_timed_calls_total", "Calls that were timed on the device.",
            &read::Amounts::device_timed, false, true},
    Counter{"tprof_device_seconds_total", "Time on the device of the calls that were timed there.",
            &read::Amounts::device_ns, true, true},
};

void add_counters(const Operations& operations, std::string& out) {
  for (const Counter& counter : kCounters) {
    begin(out, counter.name, "counter", counter.help);
    for (const auto& [key, amounts] : operations) {
      if (counter.timed && amounts.device_timed == 0) continue;
      const auto& [rank, bucket, operation] = key;
      const std::uint64_t n = amounts.*counter.amount;
      out += fmt::format("{}{{bucket={},operation={},rank={}}} {}\n", counter.name,
                         label(bucket_name(bucket)), label(operation), label(rank),
                         counter.seconds ? seconds(n) : std::to_string(n));
    }
  }
}

void add_dropped(const std::vector<Rank>& ranks, std::string& out) {
  std::map<std::pair<std::string, std::string>, std::uint64_t> dropped;
  for (const Rank& rank : ranks) {
    const auto* why = rank.why_dropped();
    if (why == nullptr) continue;
    for (const auto& [reason, lines] : *why) dropped[{rank.name(), reason}] += lines;
  }
  begin(out, "tprof_dropped_lines_total", "counter",
        "Calls without an event line; they are counted.");
  for (const auto& [key, lines] : dropped) {
    out += fmt::format("tprof_dropped_lines_total{{rank={},reason={}}} {}\n", label(key.first),
                       label(key.second), lines);
  }
}

void add_states(const std::vector<Rank>& ranks, std::string& out) {
  std::map<std::string_view, std::size_t> states;
  for (const std::string_view state : kStates) states[state] = 0;
  for (const Rank& rank : ranks) ++states[rank.state()];
  begin(out, "tprof_ranks", "gauge", "Ranks by what is known of their process.");
  for (const auto& [state, n] : states) {
    out += fmt::format("tprof_ranks{{state={}}} {}\n", label(state), n);
  }
}

}  // namespace

std::string exposition(const std::vector<Rank>& ranks) {
  std::string out;
  add_counters(operations_of(ranks), out);
  add_dropped(ranks, out);
  add_states(ranks, out);
  return out;
}

}  // namespace tprof::live
