#include "export/chrome.h"

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include "export/part_editor.h"
#include "interpose/format/line_kinds.h"
#include "interpose/format/schema.h"

namespace tprof::trace_export {
namespace {

using Json = nlohmann::ordered_json;

// A piece of the output on its way to it. Slots are reused: new room for every piece would cost
// more in page faults than the editing itself.
struct Slot {
  read::Block block;
  PartEditor editor;
  Pen text;
  Piece piece;
  std::future<void> work;
  const Part* part = nullptr;  // null: no lines of a part
};

// Slots that other threads work on, written in the order in which they were taken. Their small
// number bounds the memory. Nothing more is written after a part that can't be read.
class Pipeline {
 public:
  Pipeline(Output& output, bool gzip, std::int64_t window_ns)
      : rates(window_ns),
        output_(output),
        gzip_(gzip),
        slots_(std::clamp(std::thread::hardware_concurrency(), 1U, 16U) + 1) {}

  // Returns the next slot, after writing what it held.
  Slot& next_slot() {
    Slot& slot = slots_[next_];
    next_ = (next_ + 1) % slots_.size();
    write(slot);
    slot.text.clear();
    slot.part = nullptr;
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

  // Throws if the output can't be begun again.
  void leave_out(const Part& part, const read::BadInput& error) {
    if (!output_.appears_whole()) throw error;
    if (!leaves_out(part)) bad.push_back({&part, error});
  }
  bool leaves_out(const Part& part) const {
    return std::ranges::find(bad, &part, &BadPart::part) != bad.end();
  }

  Rates rates;  // of what was written
  std::vector<BadPart> bad{};

 private:
  void write(Slot& slot) {
    if (!slot.work.valid()) return;
    try {
      slot.work.get();
    } catch (const read::BadInput& e) {
      leave_out(*slot.part, e);
    }
    if (!bad.empty()) return;
    output_.write(slot.piece);
    if (slot.part != nullptr) rates.add(slot.editor.moved());
  }

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
  for (const Part& part : merged.parts) {
    for (const Member& m : part.members) {
      if (part.of_node || !m.to) continue;
      put_json(metadata(LineKind::process_name, m.to->pid, {{"name", m.title}}), out.line());
      put_json(metadata(LineKind::process_sort_index, m.to->pid, {{"sort_index", m.sort_index}}),
               out.line());
    }
  }
}

// Writes the first line of another tool's trace, which says how its times came onto the axis.
void put_opening(const Beside& beside, std::size_t number, Pen& out) {
  Json args = {{"file", beside.file->file.filename().string()},
               {"clock", beside.file->clock.sentence()}};
  if (const auto& shift = beside.file->clock.shift) {
    args["collectives"] = shift->pairs;
    args["shift_ns"] = shift->ns;
    args["fits_ns"] = {shift->least_ns, shift->most_ns};
  }
  put_json({{"cat", "OTHER,"},
            {"ph", "M"},
            {"pid", beside.to.pid},
            {"tid", first_lane_of(number)},
            {"name", "tprof_other"},
            {"args", std::move(args)}},
           out.line());
}

}  // namespace

std::vector<BadPart> write_chrome(const Merged& merged, const Timeline& timeline, bool gzip,
                                  Output& output,
                                  const std::function<void(std::uint64_t)>& progress) {
  Pipeline pipeline(output, gzip, timeline.window_ns());
  std::uint64_t done = 0;
  std::int64_t next_id = timeline.next_arrow();
  const auto put_part = [&](const Part& part) {
    std::optional<read::BlockReader> reader;
    const auto next = [&](read::Block& block) {
      try {
        if (!reader) reader.emplace(part.trace->source);
        return reader->next(block);
      } catch (const read::BadInput& e) {
        pipeline.leave_out(part, e);
        return false;
      }
    };
    for (;;) {
      Slot& slot = pipeline.next_slot();
      if (pipeline.leaves_out(part) || !next(slot.block)) return;
      slot.part = &part;
      pipeline.start(slot, [&part, &slot, &timeline](Pen& out) {
        slot.editor.edit(part, slot.block, timeline, out);
      });
      progress(done += slot.block.text.size());
    }
  };
  const auto each_rank = [&](const auto& put) {
    for (const Part& part : merged.parts) {
      for (const Member& m : part.members) {
        if (m.to && !part.of_node) pipeline.put([&put, &m](Pen& out) { put(m, out); });
      }
    }
    pipeline.finish();
  };
  pipeline.put([&](Pen& out) { put_opening(merged, out); });
  each_rank([&](const Member& m, Pen& out) { timeline.write_lanes(m, out); });
  for (const Part& part : merged.parts) put_part(part);
  for (std::size_t i = 0; i < merged.beside.size(); ++i) {
    const Beside& beside = merged.beside[i];
    pipeline.put([&beside, i](Pen& out) { put_opening(beside, i, out); });
    beside.file->trace->put(beside.to, i, next_id, [&](Pen& full) {
      Slot& slot = pipeline.next_slot();
      std::swap(slot.text, full);
      pipeline.start(slot, [](const Pen&) {});
    });
  }
  pipeline.finish();  // all calls are counted
  each_rank([&](const Member& m, Pen& out) { pipeline.rates.write(m.to->pid, out); });
  pipeline.put([](Pen& out) { out.reserve(Pen::kLine) << "\n]\n"; });
  pipeline.finish();
  return std::move(pipeline.bad);
}

}  // namespace tprof::trace_export
