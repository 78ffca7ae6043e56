#include "read/load.h"

#include <simdjson.h>
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "interpose/format/line_kinds.h"
#include "interpose/format/snapshot.h"
#include "read/error.h"
#include "read/flight_recorder.h"
#include "read/metadata.h"
#include "read/ring_file.h"
#include "read/window_files.h"

namespace tprof::read {

namespace {

bool opens_array(std::string_view text) {
  return text.starts_with("[\n") || text.starts_with("[\r\n");
}

Beginning beginning_in(const Block& first_lines) {
  if (!opens_array(first_lines.text)) return {};
  MetadataParser parser(first_lines.file);
  try {
    each_line(first_lines, [&](const Line& line) {
      const bool known = parser.merged() || !parser.processes().empty();
      if (!known) parser.line(line);
    });
  } catch (const OtherSchema& e) {
    return {.refused = e.what()};
  } catch (const BadInput&) {
    return {};
  }
  if (parser.merged()) return {.merged = true};
  if (parser.processes().empty()) return {};
  return {.header = std::move(parser.processes()[0].header)};
}

constexpr std::size_t kEdge = std::size_t{1} << 16;
constexpr std::size_t kLargestTail = std::size_t{16} << 20;  // else all is read in blocks

NotATrace not_an_array(const std::filesystem::path& file, std::string_view begin) {
  if (begin.substr(0, kEdge).find("\"traceEvents\"") != std::string_view::npos) {
    return {file, false,
            "a trace of another tool, such as PyTorch's profiler, not a tprof trace: merge --with "
            "takes it"};
  }
  return {file, false, "expected '[' as the first line: not a tprof trace"};
}

void set_end(Process& p) {
  p.snapshot = p.forced = p.footer && p.footer->snapshot;
  p.end = !p.footer            ? End::lost
          : p.footer->complete ? End::closed
          : p.snapshot         ? End::running
          : p.footer->partial  ? End::partial
                               : End::recovered;
}

// Reads every metadata line of the file.
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
    if (first && !opens_array(block.text)) throw not_an_array(file, block.text);
    first = false;
    each_line(block, [&](const Line& line) {
      if (!parser.merged() || merged == Merged::read) parser.line(line);
    });
    if (parser.merged() && merged == Merged::leave) {
      trace.merged = true;
      return trace;
    }
  }
  const std::string& rest = reader.remainder();
  if (parser.processes().empty()) {
    if (first && rest.empty()) throw NotATrace(file, true, "empty file");
    if (first && rest != "[") throw not_an_array(file, rest);
    if (ended || rest == "]") {
      throw NotATrace(file, false, "expected a tprof_header line: not a tprof trace");
    }
    throw NotATrace(file, true, "truncated before its tprof_header line");
  }
  trace.merged = parser.merged();
  trace.metadata_read = true;
  trace.processes = std::move(parser.processes());
  trace.processes.back().cut = !rest.empty() && rest != "]";
  trace.processes.back().cut_short = reader.cut_short();
  std::ranges::for_each(trace.processes, set_end);
  return trace;
}

Block block_of(std::string_view text, std::uint64_t offset) {
  Block block;
  block.offset = offset;
  block.text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  block.text = text;
  return block;
}

// A file that may grow or shrink while it is read.
class File {
 public:
  explicit File(std::filesystem::path path) : path_(std::move(path)) {
    in_.open(path_, std::ios::binary);
  }

  const std::filesystem::path& path() const { return path_; }

  std::uint64_t size() const {
    std::error_code error;
    const std::uint64_t size = std::filesystem::file_size(path_, error);
    return error ? 0 : size;
  }

  Block part(std::uint64_t offset, std::size_t size) {
    Block block;
    block.offset = offset;
    block.text.reserve(size + simdjson::SIMDJSON_PADDING);
    block.text.resize(size);
    in_.clear();
    in_.seekg(static_cast<std::streamoff>(offset));
    in_.read(block.text.data(), static_cast<std::streamsize>(size));
    if (!in_) block.text.clear();
    return block;
  }

  Block beginning() { return part(0, std::min<std::uint64_t>(size(), kEdge)); }

  // True if the file ends with a line `]`. An unclosed file ends with a comma, or within a line.
  bool ended() {
    const std::uint64_t end = size();
    const std::size_t last = std::min<std::uint64_t>(end, 3);
    const std::string text = part(end - last, last).text;
    return text == "\n]\n" || text.ends_with("\n]");
  }

 private:
  std::filesystem::path path_;
  std::ifstream in_;
};

// Returns the last ledger line and everything after it; nullopt if the file does not end like a
// closed one.
std::optional<Block> closing_lines(File& file, std::uint64_t file_size) {
  for (std::size_t size = kEdge; size < file_size && size <= kLargestTail; size *= 4) {
    Block tail = file.part(file_size - size, size);
    if (!tail.text.ends_with("]\n") && !tail.text.ends_with(']')) return std::nullopt;
    const std::size_t ledger = tail.text.rfind("\n" + std::string(info_of(LineKind::ledger).start));
    if (ledger == std::string::npos) continue;
    tail.text.erase(0, ledger + 1);
    tail.offset += ledger + 1;
    return tail;
  }
  return std::nullopt;
}

bool knows_its_communicators(const Process& p) {
  const Ledger& ledger = *p.ledger;
  return std::ranges::all_of(ledger.rows,
                             [&](const Row& r) { return !r.comm || p.comms.contains(*r.comm); }) &&
         std::ranges::all_of(ledger.collectives,
                             [&](const Collectives& c) { return p.comms.contains(c.comm); });
}

// True unless the rank has to be taken from the largest communicator.
bool knows_its_rank(const Process& p) {
  return p.header.rank || p.ledger->collectives.empty();
}

// Makes a trace from the lines at both ends of a file. The ledger is cumulative, and the
// communicators are repeated after it. So only the ends of earlier epochs and lines that were not
// repeated can be missing, and both are noticed. Then, or if a line is wrong, returns nullopt: the
// whole file has to be read.
std::optional<Trace> of_ends(Source& source, const Block& head, const Block& tail) {
  MetadataParser parser(source.file);
  const auto parse = [&](const Line& line) { parser.line(line); };
  std::int64_t pid = 0;
  try {
    each_line(head, parse);
    if (parser.merged() || parser.processes().size() != 1) return std::nullopt;
    pid = parser.processes()[0].line_pid;
    each_line(tail, parse);
  } catch (const BadInput&) {
    return std::nullopt;
  }
  if (parser.processes().size() != 1) return std::nullopt;
  Process& p = parser.processes()[0];
  if (p.line_pid != pid) return std::nullopt;
  if (!p.footer || !p.ledger || p.ledger->epoch != 0) return std::nullopt;
  if (!knows_its_communicators(p) || !knows_its_rank(p)) return std::nullopt;
  set_end(p);
  return Trace{std::move(source), std::move(parser.processes())};
}

std::optional<Trace> closed(File& file, const Block& head) {
  const std::uint64_t size = file.size();
  if (size <= 2 * kEdge) return std::nullopt;
  const auto tail = closing_lines(file, size);
  Source source{file.path(), Source{}.cut, {}};
  return tail ? of_ends(source, head, *tail) : std::nullopt;
}

// Loads a file that continues in another one, `from`, after the cut.
Trace with_rest(Source source, const Block& head, const std::filesystem::path& from) {
  const std::uint64_t cut = source.cut;
  const std::string_view first = std::string_view(head.text).substr(0, cut);
  auto ends = of_ends(source, block_of(first.substr(0, first.rfind('\n') + 1), 0),
                      block_of(source.rest, cut));
  if (ends) return *std::move(ends);
  const auto file = source.file;
  try {
    return scan(std::move(source));
  } catch (const BadInput& e) {
    scan({file, cut, {}});  // throws if the rank file itself is damaged
    throw BadInput(from, std::string("damaged: in its lines, after byte ") + std::to_string(cut) +
                             " of the rank file: " + e.what());
  }
}

// Returns the end of the last whole line within the first `size` bytes.
std::uint64_t whole_lines(File& file, std::uint64_t size) {
  for (std::uint64_t end = size; end != 0;) {
    const std::size_t part = std::min<std::uint64_t>(end, kEdge);
    const Block block = file.part(end - part, part);
    if (const auto at = block.text.rfind('\n'); at != std::string::npos) return end - part + at + 1;
    end -= part;
  }
  return 0;
}

// Returns the newest complete snapshot of this process, or nullopt.
std::optional<Rest> read_snapshot(const std::filesystem::path& rank_file, const Header& header) {
  // The process may replace the older text while it is read: then the newer one is complete.
  constexpr int kAttempts = 3;
  for (int i = 0; i < kAttempts; ++i) {
    std::ifstream in(snapshot_path(rank_file), std::ios::binary);
    if (!in) return std::nullopt;
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    std::optional<Rest> newest;
    std::uint64_t generation = 0;
    for (const std::uint64_t at : {snapshot_entry_at(0), snapshot_entry_at(1)}) {
      SnapshotEntry e{};
      if (bytes.size() < at + sizeof e) continue;
      std::memcpy(&e, bytes.data() + at, sizeof e);
      const bool ours = std::memcmp(e.magic, kSnapshotMagic, sizeof e.magic) == 0 &&
                        e.sum == checksum(e) &&
                        e.base_real_ns == static_cast<std::uint64_t>(header.base_time_ns);
      if (!ours || e.generation <= generation || e.offset > bytes.size()) continue;
      const std::string_view text = std::string_view(bytes).substr(e.offset, e.length);
      if (text.size() != e.length || fnv1a(text) != e.text_sum) continue;
      generation = e.generation;
      newest = Rest{e.cut, std::string(text)};
    }
    if (newest) return newest;
  }
  return std::nullopt;
}

// Completes an unclosed file from the ring file of its process or, if that is out of reach, from
// its last snapshot. Returns nullopt if there is neither.
std::optional<Trace> unclosed(File& file, const Block& head, const Header& header, Wanted wanted) {
  const auto ring = ring_of(file.path(), header);
  auto snapshot = ring ? std::nullopt : read_snapshot(file.path(), header);
  if (!ring && !snapshot) return std::nullopt;
  auto [rest, running] =
      ring ? replay(*ring, file.path(), wanted)
           : Replay{{file.path(), snapshot->cut, std::move(snapshot->rest)}, true};
  if (file.ended()) return std::nullopt;  // it has closed meanwhile
  const std::uint64_t size = file.size();
  if (ring && size < rest.cut) {
    throw BadInput(file.path(), size,
                   "the file ends here; its ring file says that " + std::to_string(rest.cut) +
                       " bytes were written: it is a copy, or truncated");
  }
  // A file server may show the snapshot before the end of the rank file.
  if (!ring) rest.cut = whole_lines(file, std::min(rest.cut, size));
  Trace whole = with_rest(std::move(rest), head, ring ? ring->path() : snapshot_path(file.path()));
  Process& p = whole.processes[0];
  if (running) p.end = End::running;
  if (!ring) p.snapshot = true;
  if (!ring) p.forced = false;
  return whole;
}

// Loads a ring file in place of a rank file that its process could not write yet.
Trace of_ring_alone(const RingFile& ring, Wanted wanted) {
  auto [source, running] = replay(ring, ring.rank_file(), wanted);
  source.file = ring.path();
  source.cut = 0;
  source.rest.insert(0, ring.view().header());
  Trace whole = scan(std::move(source));
  if (running) whole.processes[0].end = End::running;
  return whole;
}

Trace load_file(const std::filesystem::path& path, Merged merged, Wanted wanted) {
  if (path.extension() == ".ring") {
    const auto ring = RingFile::open(path);
    if (ring && ring->is_alone()) return of_ring_alone(*ring, wanted);
    if (ring) return load_file(ring->rank_file(), merged, wanted);  // it exists by now
  }
  const auto all = [&] { return scan({path, Source{}.cut, {}}, merged); };
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return all();  // a pipe can be read only once
  File file(path);
  Block head = file.beginning();
  const bool dump = is_called_like_a_dump(path) || begins_like_a_dump(head.text);
  head.text.resize(head.text.rfind('\n') + 1);
  const std::optional<Header> header = beginning_in(head).header;
  if (!header) {
    if (!dump) return all();
    if (wanted == Wanted::dumps) return load_dump(path);
    throw NotATrace(path, false, "a dump of PyTorch's Flight Recorder: tprof check reads it");
  }
  if (auto ends = closed(file, head)) return std::move(*ends);
  if (!file.ended()) {
    const bool alone = !header->window_of.empty();
    auto open = alone ? std::nullopt : unclosed(file, head, *header, wanted);
    if (open) return std::move(*open);
  }
  if (head.text.size() != file.size()) return all();
  Trace trace = scan({path, 0, head.text}, merged);  // the text is already here
  trace.source.cut = Source{}.cut;
  std::string().swap(trace.source.rest);  // an assignment would keep the capacity
  return trace;
}

}  // namespace

Beginning beginning_of(const std::filesystem::path& file) {
  constexpr std::size_t kHeader = 8U << 10;  // enough for any usual header
  Beginning found;
  for (const std::size_t size : {kHeader, 8 * kHeader}) {
    try {
      const Source source{file, Source{}.cut, {}};
      Block lines;
      BlockReader(source, size).next(lines);
      found = beginning_in(lines);
    } catch (const BadInput&) {
      return {};
    }
    if (found.merged || found.header || !found.refused.empty()) break;
  }
  return found;
}

std::filesystem::path ring_path(const std::filesystem::path& rank_file, const Header& header) {
  return rank_file.parent_path() / header.ring;
}

Trace load(const std::filesystem::path& file, Merged merged, Wanted wanted) {
  Trace trace = load_file(file, merged, wanted);
  if (!trace.merged && !trace.processes.front().header.window_of.empty()) {
    count_lines_of_window(trace);
  }
  if (!trace.merged && has_window_files(trace.processes.front().header)) {
    Process& p = trace.processes.front();
    trace.source.windows_of = p.header.base_time_ns;
    trace.metadata_read = false;  // windows' files have some too
    if (p.footer && p.footer->window_files != 0) count_missing_windows(trace.source, p);
  }
  std::vector<Process> lanes;
  for (Process& p : trace.processes) {
    std::vector<Process> ranks = lanes_of(std::move(p));
    std::move(ranks.begin(), ranks.end(), std::back_inserter(lanes));
  }
  trace.processes = std::move(lanes);
  return trace;
}

std::filesystem::path snapshot_path(const std::filesystem::path& rank_file) {
  return rank_file.parent_path() / ("." + rank_file.stem().string() + ".snapshot");
}

}  // namespace tprof::read
