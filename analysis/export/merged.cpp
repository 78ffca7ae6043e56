#include "export/merged.h"

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include "export/line_writer.h"
#include "interpose/format/line_kinds.h"
#include "interpose/format/schema.h"

namespace tprof::trace_export {
namespace {

using Json = nlohmann::ordered_json;

// A piece of the output on its way to it. Slots are reused: new room for every piece would cost
// more in page faults than the editing itself.
struct Slot {
  read::Block block;
  LineWriter writer;
  Pen text;
  Piece piece;
  std::future<void> work;
};

// Slots that other threads work on, written in the order in which they were taken. Their small
// number bounds the memory.
class Pipeline {
 public:
  Pipeline(Output& output, bool gzip)
      : output_(output),
        gzip_(gzip),
        slots_(std::clamp(std::thread::hardware_concurrency(), 1U, 16U) + 1) {}

  // Returns the next slot, after writing what it held.
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
  // Has write(slot.text) called in another thread.
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

// Calls f for each process of the job that goes somewhere.
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

// Writes the first line of another tool's trace, which says how its times came onto the axis.
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
    // Its times are CLOCK_REALTIME of the host, as is ts 0 of the process, except for its shift.
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

}  // namespace tprof::trace_export
