#include "export/merged.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <limits>
#include <set>
#include <thread>
#include <utility>

#include "check/names.h"
#include "export/line_writer.h"
#include "interpose/format/line_kinds.h"
#include "interpose/format/schema.h"
#include "read/lines.h"
#include "read/window_files.h"

namespace tprof::trace_export {
namespace {

using Json = nlohmann::ordered_json;

// A piece of output in progress. Slots are reused, since page faults for new memory would cost more
// than the editing itself.
struct Slot {
  read::Block block;
  LineWriter writer;
  Pen text;
  Piece piece;
  std::future<void> work;
};

// Slots that other threads fill, written in the order in which they were taken. Their small number
// bounds memory.
class Pipeline {
 public:
  Pipeline(Output& output, bool gzip)
      : output_(output),
        gzip_(gzip),
        slots_(std::clamp(std::thread::hardware_concurrency(), 1U, 16U) + 1) {}

  // Returns the next slot, after writing its contents.
  Slot& next_slot() {
    Slot& slot = slots_[next_];
    next_ = (next_ + 1) % slots_.size();
    if (slot.work.valid()) {
      slot.work.get();
      output_.write(slot.piece);
    }
    slot.text.clear();
    return slot;
  }
  // Calls write(slot.text) in another thread.
  template <typename F>
  void start(Slot& slot, F write) {
    slot.work = std::async(std::launch::async, [&slot, gzip = gzip_, write] {
      write(slot.text);
      pack(slot.text.text(), gzip, slot.piece);
    });
  }
  template <typename F>
  void put(F write) {
    start(next_slot(), write);
  }
  void finish() {
    for (std::size_t i = 0; i < slots_.size(); ++i) next_slot();
  }

 private:
  Output& output_;
  bool gzip_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;
};

void put_json(const Json& line, Pen& out) {
  const std::string text = line.dump(-1, ' ', true, Json::error_handler_t::replace);
  out.reserve(text.size() + Pen::kLine) << text;
}

Json metadata(LineKind kind, std::int64_t pid, Json args) {
  return {
      {"name", name_of(kind)}, {"ph", "M"}, {"pid", pid}, {"tid", 0}, {"args", std::move(args)}};
}

// Calls f for each process with a placement.
template <typename F>
void each_member(const std::vector<Part>& parts, const F& f) {
  for (const Part& part : parts) {
    for (const Member& m : part.members) {
      if (m.to && !part.of_node) f(m);
    }
  }
}

// Writes `[` and the lines that only a merged trace has.
void put_opening(const Merged& merged, Pen& out) {
  Json args = {{"schema", kSchema}, {"tprof_version", kVersion}, {"files", Json::array()}};
  for (const Part& part : merged.parts) {
    if (!part.of_node) args["files"].push_back(part.trace->source.file.filename().string());
  }
  if (!merged.clocks.empty()) args["clocks"] = merged.clocks;
  if (!merged.only.empty()) args["only"] = merged.only;
  out.reserve(Pen::kLine) << "[\n";
  put_json(metadata(LineKind::merged, 0, std::move(args)), out);
  each_member(merged.parts, [&](const Member& m) {
    put_json(metadata(LineKind::process_name, m.to->pid, {{"name", m.title}}), out.line());
    put_json(metadata(LineKind::process_sort_index, m.to->pid, {{"sort_index", m.sort_index}}),
             out.line());
  });
}

// Writes the first line of another tool's trace, which says how its times were aligned.
void put_opening(const OtherFile& other, std::int64_t pid, std::int64_t first_lane, Pen& out) {
  Json args = {{"file", other.file.filename().string()}, {"clock", other.clock()}};
  if (const auto& shift = other.shift) {
    args["collectives"] = shift->pairs;
    args["shift_ns"] = shift->ns;
    args["fits_ns"] = {shift->least_ns, shift->most_ns};
  }
  put_json({{"cat", "OTHER,"},
            {"ph", "M"},
            {"pid", pid},
            {"tid", first_lane},
            {"name", "tprof_other"},
            {"args", std::move(args)}},
           out.line());
}

namespace fs = std::filesystem;
using read::Process;

constexpr double kTypicalRatio = 12;  // of compression

double text_bytes(const fs::path& file) {
  std::error_code error;
  const auto size = static_cast<double>(fs::file_size(file, error));
  if (error) return 0;
  const bool packed = std::ranges::count(read::kPackedEndings, file.extension().string()) != 0;
  return packed ? size * kTypicalRatio : size;
}

// Adds up the events in windows' files, by the path of the rank file without its suffix.
void add_windows(const fs::path& folder, std::map<fs::path, double>& windows) {
  std::error_code error;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string stem = read::stem_of_rank_file(entry->path().filename().string());
    if (!stem.empty()) windows[folder / stem] += text_bytes(entry->path());
  }
}

double share(const filter::Selection& asked, const Process& p) {
  const auto [in_lines, left_out] = asked.lines_of(p);
  if (in_lines == 0) return 1;
  return static_cast<double>(in_lines - left_out) / static_cast<double>(in_lines);
}

std::int64_t first_index(const Part& part) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const Member& m : part.members) {
    if (m.to) first = std::min(first, m.sort_index);
  }
  return first;
}

// Returns by how much a node file's clock starts later than that of a process on its host.
std::int64_t later_ns(const read::Header& of, const read::Header& node) {
  return of.monotonic_ns && node.monotonic_ns ? *node.monotonic_ns - *of.monotonic_ns
                                              : node.base_time_ns - of.base_time_ns;
}

// True if the process ran under the `tprof run` that wrote these lanes.
bool is_of_node(const read::Trace& trace, const read::Header& node) {
  if (trace.merged) return false;
  const read::Header& h = trace.processes.front().header;
  return h.boot_id == node.boot_id && h.run_id == node.run_id;
}

void add_node(const read::Trace& node, std::vector<Part>& parts) {
  const Process& writer = node.processes.front();
  auto lowest = parts.end();
  const Member* at = nullptr;
  for (auto part = parts.begin(); part != parts.end(); ++part) {
    if (part->of_node || !is_of_node(*part->trace, writer.header)) continue;
    for (const Member& m : part->members) {
      if (!m.to || (at != nullptr && m.to->pid >= at->to->pid)) continue;
      at = &m;
      lowest = part;
    }
  }
  if (at == nullptr) return;
  Member member{.process = &writer, .to = at->to, .of_node = true};
  member.to->shift_ns += later_ns(at->process->header, writer.header);
  parts.insert(lowest + 1, {&node, {std::move(member)}, true});
}

}  // namespace

void write_merged(const Merged& merged, const Timeline& timeline, bool gzip, Output& output,
                  const std::function<void(std::uint64_t)>& progress) {
  Pipeline pipeline(output, gzip);
  std::uint64_t done = 0;
  pipeline.put([&](Pen& out) { put_opening(merged, out); });
  each_member(merged.parts, [&](const Member& m) {
    pipeline.put([&timeline, &m](Pen& out) { timeline.write_lanes(m, out); });
  });
  for (const Part& part : merged.parts) {
    read::BlockReader reader(part.trace->source);
    for (;;) {
      Slot& slot = pipeline.next_slot();
      if (!reader.next(slot.block)) break;
      pipeline.start(slot, [&part, &slot, &timeline](Pen& out) {
        slot.writer.write(part.members, slot.block, timeline, out);
      });
      progress(done += slot.block.text.size());
    }
  }
  std::int64_t next_id = timeline.next_arrow();
  std::int64_t lane = kFirstOtherLane;
  for (const OtherFile& other : merged.others) {
    // Its times are the host's CLOCK_REALTIME, like the process's ts 0, apart from the shift.
    Placement to = *merged.members.at(other.process).to;
    to.shift_ns += other.shift_ns() - other.process->header.base_time_ns;
    pipeline.put([&other, pid = to.pid, lane](Pen& out) { put_opening(other, pid, lane, out); });
    other.trace->put(to, lane, next_id, [&](Pen& full) {
      Slot& slot = pipeline.next_slot();
      std::swap(slot.text, full);
      pipeline.start(slot, [](const Pen&) {});
    });
    lane += kOtherLanes;
  }
  pipeline.put([](Pen& out) { out.reserve(Pen::kLine) << "\n]\n"; });
  pipeline.finish();
}

// The epoch is how often the program's step numbers had restarted; if they never do, how often the
// counts had been reset.
std::string Member::position(std::int64_t ts_ns) const {
  const steps::Interval* step = steps::interval_of(*positions, process, ts_ns);
  std::optional<std::int64_t> epoch;
  if (positions->counted_on && step != nullptr) {
    epoch = step->epoch;
  } else if (!positions->counted_on && !process->epoch_ends.empty()) {
    epoch = std::ranges::count_if(process->epoch_ends,
                                  [&](const read::Ledger& end) { return end.ts_ns <= ts_ns; });
  }
  std::string out;
  if (step != nullptr) out = fmt::format(R"("step":{})", step->step);
  if (epoch) out += fmt::format(R"({}"epoch":{})", out.empty() ? "" : ",", *epoch);
  return out;
}

bool Member::wants(std::int64_t from_ns, std::int64_t to_ns) const {
  if (asked == nullptr || !asked->filter().steps) return true;
  const auto of_rank = asked->found()->ranks.find(process);
  if (of_rank == asked->found()->ranks.end()) return false;
  return std::ranges::any_of(of_rank->second, [&](const steps::Interval& i) {
    const bool before_its_end = from_ns < i.to_ns;
    return asked->filter().steps->holds(i.step) && before_its_end &&
           (i.from_ns < to_ns || (from_ns == to_ns && i.from_ns == to_ns));
  });
}

Members placements(const filter::Selection& asked, const job::Job& job, const TimeAxis& axis,
                   const std::vector<const Process*>& chosen,
                   const std::vector<OtherFile>& others) {
  std::int64_t base = axis.base_ns(chosen);
  for (const OtherFile& other : others) {
    base = std::min(base, axis.zero_ns(*other.process) + other.begin_ns());
  }
  std::int64_t next_pid = std::max(job.world_size.value_or(0), std::int64_t{1});
  if (!job.ranks.empty()) next_pid = std::max(next_pid, job.ranks.back() + 1);
  std::set<std::int64_t> used;
  Members members;
  for (const Process* p : chosen) {
    const read::Header& h = p->header;
    const bool by_rank = h.rank && used.insert(*h.rank).second;
    const std::int64_t pid = by_rank ? *h.rank : next_pid++;
    const std::string title = p->lanes > 1 ? check::name_of(*p)
                              : by_rank    ? fmt::format("rank {}", *h.rank)
                              : h.rank     ? fmt::format("rank {}, pid {}", *h.rank, h.pid)
                                           : fmt::format("pid {}", h.pid);
    const auto sort_index = static_cast<std::int64_t>(members.size());
    Member& m = members[p];
    m = {.process = p,
         .to = axis.placement(*p, pid, base),
         .title = h.host.empty() ? title : title + " on " + h.host,
         .sort_index = sort_index};
    if (!asked.words().of_calls()) continue;
    m.asked = &asked;
    // The footer is for all lanes, and goes with the first.
    for (const Process* lane = p; p->lane == 0 && lane < p + p->lanes; ++lane) {
      m.left_out += asked.lines_of(*lane).second;
    }
  }
  return members;
}

std::uint64_t estimated_bytes(const read::Traces& traces, const std::vector<const Process*>& chosen,
                              const filter::Selection& asked) {
  const std::set<const Process*> those(chosen.begin(), chosen.end());
  double all = 0;
  std::set<fs::path> folders;
  std::map<fs::path, double> windows;
  for (const read::Trace& trace : traces.traces) {
    double parts = 0;  // each rank of a file has its part
    for (const Process& p : trace.processes) {
      if (those.contains(&p)) parts += share(asked, p);
    }
    const read::Source& source = trace.source;
    const fs::path folder = source.file.parent_path();
    if (source.windows_of && folders.insert(folder).second) add_windows(folder, windows);
    const double bytes = text_bytes(source.file) + static_cast<double>(source.rest.size()) +
                         (source.windows_of ? windows[folder / source.file.stem()] : 0);
    all += bytes * parts / static_cast<double>(trace.processes.size());
  }
  return static_cast<std::uint64_t>(all);
}

std::vector<Part> parts_of(const read::Traces& traces, const std::vector<read::Trace>& nodes,
                           const Members& members) {
  std::vector<Part> parts;
  for (const read::Trace& trace : traces.traces) {
    Part part{&trace, {}};
    for (const Process& p : trace.processes) {
      const auto found = members.find(&p);
      part.members.push_back(found == members.end() ? Member{&p} : found->second);
    }
    if (std::ranges::any_of(part.members, [](const Member& m) { return m.to.has_value(); })) {
      parts.push_back(std::move(part));
    }
  }
  std::ranges::stable_sort(parts, {}, first_index);
  for (const read::Trace& node : nodes) add_node(node, parts);
  return parts;
}

}  // namespace tprof::trace_export
