#include "export/merge_filter.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "read/json.h"
#include "read/metadata.h"

namespace tprof::trace_export {
namespace {

using read::Process;

constexpr std::uint64_t kTypicalRatio = 12;  // of gzip's to the lines

// Those of other steps go with them: NVTX ranges, computation, counters.
bool touches_steps(const filter::Selection& asked, const Process& p, const read::object& line) {
  const auto& steps = asked.filter().steps;
  if (!steps) return true;
  const auto of_rank = asked.found()->ranks.find(&p);
  if (of_rank == asked.found()->ranks.end()) return false;
  const auto micros = [&](std::string_view key) {
    double value = 0;
    const auto e = read::find(line, key);
    return e && e->get(value) == simdjson::SUCCESS && std::abs(value) < 1e15 ? value : 0;
  };
  const double ts = micros("ts");
  const auto from_ns = static_cast<std::int64_t>(ts * 1000);
  const auto to_ns = static_cast<std::int64_t>((ts + micros("dur")) * 1000);
  return std::ranges::any_of(of_rank->second, [&](const steps::Interval& i) {
    return steps->holds(i.step) && from_ns < i.to_ns && i.from_ns <= to_ns;
  });
}

bool keeps(const filter::Selection& asked, const Process& p, const read::Line& line,
           simdjson::dom::parser& parser) {
  if (read::is_metadata(line.text) || read::is_flow(line.text) || read::is_other(line.text) ||
      line.text.starts_with("{\"name\":\"thread_name\"")) {
    return true;
  }
  read::object o;
  if (parser.parse(line.text.data(), line.text.size(), false).get(o) != simdjson::SUCCESS) {
    throw read::Malformed("expected one JSON object on this line");
  }
  if (read::is_device_time(line.text)) return asked.calls().time(p, read::device_time_of(o));
  if (read::is_named_by_program(line.text) || read::is_busy(line.text)) {
    return touches_steps(asked, p, o);
  }
  const auto e = read::call_of(o);
  if (!e) return true;
  return e->launch ? asked.calls().launch(p, *e) : asked.calls().call(p, *e);
}

// Of a compressed file the last bytes say its size modulo 2^32.
std::uint64_t text_bytes(const std::filesystem::path& file) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(file, error);
  if (error) return 0;
  if (file.extension() != ".gz") return size;
  std::ifstream in(file, std::ios::binary);
  unsigned char last[4] = {};
  in.seekg(-4, std::ios::end);
  in.read(reinterpret_cast<char*>(last), sizeof last);
  const std::uint64_t told = in ? std::uint64_t{last[0]} | std::uint64_t{last[1]} << 8 |
                                      std::uint64_t{last[2]} << 16 | std::uint64_t{last[3]} << 24
                                : 0;
  return std::max(told, size * kTypicalRatio / 2);
}

double share(const filter::Selection& asked, const Process& p) {
  const auto [in_lines, left_out] = asked.lines_of(p);
  if (in_lines == 0) return 1;
  return static_cast<double>(in_lines - left_out) / static_cast<double>(in_lines);
}

}  // namespace

void add_filter(Members& members, const filter::Selection& asked) {
  if (!asked.words().of_calls()) return;
  for (auto& [process, member] : members) {
    if (!member.to) continue;
    member.to->keeps = [&asked, p = process](const read::Line& line,
                                             simdjson::dom::parser& parser) {
      return keeps(asked, *p, line, parser);
    };
    // A footer is of all lanes, and stands with the first.
    if (process->lane != 0) continue;
    for (const Process* lane = process; lane < process + process->lanes; ++lane) {
      member.to->left_out += asked.lines_of(*lane).second;
    }
  }
}

std::uint64_t estimated_bytes(const std::vector<Part>& parts, const filter::Selection& asked) {
  double all = 0;
  for (const Part& part : parts) {
    const double bytes = static_cast<double>(text_bytes(part.trace->source.file)) +
                         static_cast<double>(part.trace->source.rest.size());
    // Of a file with several ranks, each has its part.
    for (const Member& m : part.members) {
      if (!m.to) continue;
      all += bytes * share(asked, *m.process) / static_cast<double>(part.members.size());
    }
  }
  return static_cast<std::uint64_t>(all);
}

}  // namespace tprof::trace_export
