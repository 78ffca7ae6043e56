#include "export/chrome.h"

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "export/part_editor.h"
#include "export/timeline.h"
#include "interpose/format/line_kinds.h"
#include "interpose/format/schema.h"
#include "read/error.h"

namespace tprof::trace_export {
namespace {

using Json = nlohmann::ordered_json;

// A block on its way from the input to the output. Slots are reused: new room for every block would
// cost more in page faults than the editing itself.
struct Slot {
  read::Block block;
  PartEditor editor;
  std::string text;
  Piece piece;
  std::future<void> work;
  const Part* part = nullptr;
};

// Slots that other threads work on, written in the order in which they were taken. Their small
// number bounds the memory. Nothing more is written after a part that can't be read.
class Pipeline {
 public:
  Pipeline(Output& output, std::int64_t window_ns)
      : rates_(window_ns),
        output_(output),
        slots_(std::clamp(std::thread::hardware_concurrency(), 1U, 16U) + 1) {}

  // Returns the next slot, after writing what it held.
  Slot& next_slot() {
    Slot& slot = slots_[next_];
    next_ = (next_ + 1) % slots_.size();
    write(slot);
    return slot;
  }

  void finish() {
    for (std::size_t i = 0; i < slots_.size(); ++i) next_slot();
  }

  // Throws if the output can't be begun again.
  void leave_out(const Part& part, const read::BadInput& error) {
    if (!output_.appears_whole()) throw error;
    if (!leaves_out(part)) bad_.push_back({&part, error});
  }
  bool leaves_out(const Part& part) const {
    return std::ranges::any_of(bad_, [&](const BadPart& bad) { return bad.part == &part; });
  }
  const Rates& rates() const { return rates_; }  // of what was written
  std::vector<BadPart> bad() && { return std::move(bad_); }

 private:
  void write(Slot& slot) {
    if (!slot.work.valid()) return;
    try {
      slot.work.get();
    } catch (const read::BadInput& e) {
      leave_out(*slot.part, e);
    }
    if (!bad_.empty()) return;
    output_.write(slot.piece);
    if (slot.part != nullptr) rates_.add(slot.editor.moved());
  }

  Rates rates_;

  Output& output_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;
  std::vector<BadPart> bad_;
};

Json metadata(std::string_view name, std::int64_t pid, Json args) {
  return {{"name", name}, {"ph", "M"}, {"pid", pid}, {"tid", 0}, {"args", std::move(args)}};
}

// Returns `[` and the lines that only a merged trace has.
std::string opening(const std::vector<Part>& parts, const std::vector<HostClock>& clocks,
                    const std::string& only) {
  Json files = Json::array();
  std::string processes;
  const auto add = [&](const Json& line) {
    processes += ",\n" + line.dump(-1, ' ', true, Json::error_handler_t::replace);
  };
  for (const Part& part : parts) {
    if (part.of_node) continue;
    files.push_back(part.trace->source.file.filename().string());
    for (const Member& m : part.members) {
      if (!m.to) continue;
      add(metadata(name_of(LineKind::process_name), m.to->pid, {{"name", m.title}}));
      add(metadata(name_of(LineKind::process_sort_index), m.to->pid,
                   {{"sort_index", m.sort_index}}));
    }
  }
  Json args = {{"schema", kSchema}, {"tprof_version", kVersion}, {"files", files}};
  for (const HostClock& c : clocks) {
    args["clocks"].push_back({{"host", c.host},
                              {"ranks", c.ranks},
                              {"group", c.group},
                              {"ahead_ns", c.ahead_ns},
                              {"drift_ppb", c.drift_ppb},
                              {"pieces", c.pieces},
                              {"likely_ns", c.likely_ns},
                              {"at_most_ns", c.at_most_ns ? Json(*c.at_most_ns) : Json()}});
  }
  if (!only.empty()) args["only"] = only;
  const Json merged = metadata(name_of(LineKind::merged), 0, std::move(args));
  return "[\n" + merged.dump(-1, ' ', true, Json::error_handler_t::replace) + processes;
}

// Returns the first line of another tool's trace, which says how its times came onto the axis.
std::string opening(const Beside& beside, std::size_t number) {
  Json args = {{"file", beside.file.filename().string()}, {"clock", beside.clock.sentence()}};
  if (const auto& shift = beside.clock.shift) {
    args["collectives"] = shift->pairs;
    args["shift_ns"] = shift->ns;
    args["fits_ns"] = {shift->least_ns, shift->most_ns};
  }
  const Json line = {{"cat", "OTHER,"},       {"ph", "M"},
                     {"pid", beside.to.pid},  {"tid", first_lane_of(number)},
                     {"name", "tprof_other"}, {"args", std::move(args)}};
  return ",\n" + line.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace

std::vector<BadPart> write_chrome(const std::vector<Part>& parts, const std::vector<Beside>& beside,
                                  const Timeline& timeline, const std::vector<HostClock>& clocks,
                                  const std::string& only, bool gzip, Output& output,
                                  const std::function<void(std::uint64_t)>& progress) {
  Pipeline pipeline(output, timeline.window_ns());
  const auto put = [&](std::string text) {
    Slot& slot = pipeline.next_slot();
    slot.text = std::move(text);
    slot.part = nullptr;
    slot.work =
        std::async(std::launch::async, [&slot, gzip] { pack(slot.text, gzip, slot.piece); });
  };
  put(opening(parts, clocks, only));
  std::uint64_t done = 0;
  std::int64_t next_id = timeline.meets_count();  // of an arrow
  const auto put_all = [&](const Part& part) {
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
      const std::int64_t first_id = next_id;
      next_id += PartEditor::most_arrows(slot.block);
      done += slot.block.text.size();
      slot.part = &part;
      slot.work = std::async(std::launch::async, [&part, &slot, &timeline, first_id, gzip] {
        slot.text.clear();
        slot.editor.edit(part, slot.block, timeline, first_id, slot.text);
        pack(slot.text, gzip, slot.piece);
      });
      progress(done);
    }
  };
  for (const Part& part : parts) {
    for (const Member& m : part.members) {
      if (m.to && !part.of_node) put(timeline.lanes(m));
    }
  }
  for (const Part& part : parts) put_all(part);
  for (std::size_t i = 0; i < beside.size(); ++i) {
    std::string text = opening(beside[i], i);
    beside[i].trace->put(beside[i].to, i, next_id, text, [&](std::string& full) {
      put(std::move(full));
      full.clear();
    });
    put(std::move(text));
  }
  pipeline.finish();  // all calls are counted
  for (const Part& part : parts) {
    for (const Member& m : part.members) {
      if (m.to && !part.of_node) put(pipeline.rates().lines(m.to->pid));
    }
  }
  put("\n]\n");
  pipeline.finish();
  return std::move(pipeline).bad();
}

}  // namespace tprof::trace_export
