#include "read/load.h"

#include <simdjson.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

#include "read/error.h"
#include "read/lanes.h"
#include "read/metadata.h"
#include "read/ring.h"
#include "read/snapshot.h"

namespace tprof::read {
namespace {

constexpr std::size_t kEdge = std::size_t{1} << 16;
constexpr std::size_t kLargestTail = std::size_t{16} << 20;  // beyond it all is read, in blocks

bool opens_array(std::string_view text) {
  return text.starts_with("[\n") || text.starts_with("[\r\n");
}

NotATrace not_an_array(const std::filesystem::path& file) {
  return {file, false, "expected '[' as the first line: not a tprof trace"};
}

End end_of(const Process& p) {
  if (!p.footer) return End::lost;
  if (p.footer->complete) return End::closed;
  return p.footer->partial ? End::partial : End::recovered;
}

// Every metadata line of the file.
Trace scan(Source source, Merged merged = Merged::read) {
  Trace trace{std::move(source), {}, false};
  const auto& file = trace.source.file;
  MetadataParser parser(file);
  BlockReader reader(trace.source);
  Block block;
  bool first = true;
  bool ended = false;  // by `]`
  while (reader.next(block)) {
    ended = block.text.ends_with("\n]\n");
    if (first && !opens_array(block.text)) throw not_an_array(file);
    first = false;
    each_line(block, [&](const Line& line) {
      if (parser.merged() && merged == Merged::leave) return;
      if (is_metadata(line.text)) {
        parser.line(line);
      } else if (!parser.processes().empty() && !begins_as_a_line(line.text)) {
        throw BadInput(file, line.offset,
                       "expected a line that begins with {\"name\": or {\"cat\":\"NVTX\",");
      }
    });
    if (parser.merged() && merged == Merged::leave) {
      trace.merged = true;
      return trace;
    }
  }
  const std::string& rest = reader.remainder();
  if (parser.processes().empty()) {
    if (first && rest.empty()) throw NotATrace(file, true, "empty file");
    if (first && rest != "[") throw not_an_array(file);
    if (ended || rest == "]") {
      throw NotATrace(file, false, "expected a tprof_header line: not a tprof trace");
    }
    throw NotATrace(file, true, "cut before its tprof_header line");
  }
  trace.merged = parser.merged();
  trace.processes = std::move(parser.processes());
  trace.processes.back().cut = !rest.empty() && rest != "]";
  for (Process& p : trace.processes) {
    p.end = end_of(p);
  }
  return trace;
}

Block part_of(std::ifstream& in, std::uint64_t offset, std::size_t size) {
  Block block;
  block.offset = offset;
  block.text.reserve(size + simdjson::SIMDJSON_PADDING);
  block.text.resize(size);
  in.seekg(static_cast<std::streamoff>(offset));
  in.read(block.text.data(), static_cast<std::streamsize>(size));
  if (!in) block.text.clear();
  return block;
}

// The last ledger line and what follows it, or nothing where the file does not end as a closed one.
std::optional<Block> closing_lines(std::ifstream& in, std::uint64_t file_size) {
  for (std::size_t size = kEdge; size < file_size && size <= kLargestTail; size *= 4) {
    Block tail = part_of(in, file_size - size, size);
    if (!tail.text.ends_with("]\n") && !tail.text.ends_with(']')) return std::nullopt;
    const std::size_t ledger = tail.text.rfind("\n{\"name\":\"tprof_ledger\"");
    if (ledger == std::string::npos) continue;
    tail.text.erase(0, ledger + 1);
    tail.offset += ledger + 1;
    return tail;
  }
  return std::nullopt;
}

bool knows_its_communicators(const Process& p) {
  const Ledger& ledger = p.ledgers.rbegin()->second;
  return std::ranges::all_of(ledger.rows,
                             [&](const Row& r) { return !r.comm || p.comms.contains(*r.comm); }) &&
         std::ranges::all_of(ledger.collectives,
                             [&](const Collectives& c) { return p.comms.contains(c.comm); });
}

// A closed rank file from its two ends. A ledger is cumulative, so all that could be missing is a
// communicator made later, an earlier epoch or a rank that was not known from the start; each of
// them shows, and then the answer is nothing and the whole file has to be read.
std::optional<Trace> load_ends(const std::filesystem::path& file) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(file, error);
  if (error || size <= 2 * kEdge) return std::nullopt;
  std::ifstream in(file, std::ios::binary);
  Block head = part_of(in, 0, kEdge);
  if (!opens_array(head.text)) return std::nullopt;
  MetadataParser parser(file);
  const auto take = [&](const Line& line) {
    if (is_metadata(line.text)) parser.line(line);
  };
  head.text.resize(head.text.rfind('\n') + 1);
  each_line(head, take);
  if (parser.merged() || parser.processes().size() != 1) return std::nullopt;
  if (!parser.processes()[0].header.rank) return std::nullopt;

  const auto tail = closing_lines(in, size);
  if (!tail) return std::nullopt;
  const std::int64_t pid = parser.processes()[0].line_pid;
  try {
    each_line(*tail, take);
  } catch (const BadInput&) {
    return std::nullopt;  // where it begins to be wrong shows in the whole file
  }
  if (parser.processes().size() != 1) return std::nullopt;
  Process& p = parser.processes()[0];
  if (p.line_pid != pid) return std::nullopt;
  if (!p.footer || p.ledgers.size() != 1 || p.ledgers.begin()->first != 0) return std::nullopt;
  if (!knows_its_communicators(p)) return std::nullopt;
  p.end = end_of(p);
  return Trace{{file, Source{}.cut, {}}, std::move(parser.processes()), false};
}

// Where the lines of the first `size` bytes end.
std::uint64_t whole_lines(const std::filesystem::path& file, std::uint64_t size) {
  std::ifstream in(file, std::ios::binary);
  for (std::uint64_t end = size; end != 0;) {
    const std::size_t part = std::min<std::uint64_t>(end, kEdge);
    const Block block = part_of(in, end - part, part);
    if (const auto at = block.text.rfind('\n'); at != std::string::npos) return end - part + at + 1;
    end -= part;
  }
  return 0;
}

// One whose ring file is out of sight, as of its last snapshot, if there is one.
Trace with_snapshot(Trace lost) {
  const auto& file = lost.source.file;
  const auto snapshot = read_snapshot(file, lost.processes[0].header);
  if (!snapshot) return lost;
  // A server may have the snapshot before the end of the rank file.
  const std::uint64_t cut =
      whole_lines(file, std::min(snapshot->cut, std::uint64_t{std::filesystem::file_size(file)}));
  Trace known;
  try {
    known = scan({file, cut, snapshot->lines});
  } catch (const BadInput& e) {
    throw BadInput(snapshot_path(file), std::string("damaged: of its lines, behind byte ") +
                                            std::to_string(cut) + " of the rank file: " + e.what());
  }
  known.processes[0].end = End::running;
  known.processes[0].snapshot = true;
  return known;
}

Trace load_file(const std::filesystem::path& file, Merged merged) {
  if (auto closed = load_ends(file)) return std::move(*closed);
  Trace trace = scan({file, Source{}.cut, {}}, merged);
  if (trace.merged || trace.processes.size() != 1 || trace.processes[0].footer) return trace;
  const Process& open = trace.processes[0];
  const auto ring = open.header.ring.empty() ? std::optional<RingFile>()
                                             : RingFile::open(ring_path(file, open.header));
  if (!ring || !ring->belongs_to(open.header)) {
    // It may have closed since it was read.
    Trace again = scan({file, Source{}.cut, {}});
    return again.processes[0].footer ? std::move(again) : with_snapshot(std::move(again));
  }
  Replay rest = replay(*ring);
  const std::uint64_t size = std::filesystem::file_size(file);
  if (size < rest.cut) {
    throw BadInput(file, size,
                   "the file ends here; its ring file says that " + std::to_string(rest.cut) +
                       " bytes were written: it is a copy, or was cut");
  }
  Trace whole;
  try {
    whole = scan({file, rest.cut, std::move(rest.lines)});
  } catch (const BadInput& e) {
    // The file alone was read well.
    throw BadInput(ring->path(), std::string("damaged: of its lines, behind byte ") +
                                     std::to_string(rest.cut) + " of the rank file: " + e.what());
  }
  if (rest.running) whole.processes[0].end = End::running;
  return whole;
}

}  // namespace

std::filesystem::path ring_path(const std::filesystem::path& rank_file, const Header& header) {
  return rank_file.parent_path() / header.ring;
}

Trace load(const std::filesystem::path& file, Merged merged) {
  Trace trace = load_file(file, merged);
  std::vector<Process> lanes;
  for (Process& p : trace.processes) {
    std::vector<Process> ranks = lanes_of(std::move(p));
    std::move(ranks.begin(), ranks.end(), std::back_inserter(lanes));
  }
  trace.processes = std::move(lanes);
  return trace;
}

}  // namespace tprof::read
