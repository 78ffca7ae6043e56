// Reads from the lines of one rank when its device computed, communicated and was made to wait.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "run/lines.h"
#include "why/came_lines.h"
#include "why/spans.h"
#include "why/stage_messages.h"
#include "why/times.h"

namespace tprof::why {

// Fills the cells and facts of its rank at the end of the rank's lines.
class RankLines {
 public:
  // A rank file of the default quota has fewer lines. Beyond it nothing is told of the rank.
  static constexpr std::size_t kMostLines = std::size_t{1} << 21;

  struct Step {
    std::int64_t from_ns;  // the host's mark
    std::int64_t to_ns;
    Cell* cell;
    bool counts;
    Span on_device{};
    bool untimed = false;  // it is not known when its calls ran
  };
  // `steps`: the rank's own, ascending. `marked`: by the program.
  RankLines(const read::Process& rank, std::vector<Step> steps, bool marked, RankFacts& facts,
            const LastCame* last_came);

  void call(const read::Event& e);
  void device_time(const read::DeviceTime& t);
  void busy(const read::Busy& b);
  void metadata(const read::Line& line);
  void end();

 private:
  // A call of NCCL; also a message to one other rank.
  struct Collective {
    Span on_device;
    // From here on no rank was missing; the end, if that is not known.
    std::int64_t all_there_ns;
    bool met;  // it is known
    std::int64_t called_ns;
    std::int64_t thread;
    std::int64_t comm;
    Bucket bucket;
    std::uint64_t seq;  // of the first, if they are several that were timed together
    std::uint64_t calls;
    std::size_t step;  // in which it was called; SIZE_MAX: in none
    text::Kept name;
  };
  bool room();
  Step* step_at(std::int64_t ns);  // in which the host was; null: in none
  bool takes_time(const read::Event& e) const;
  void follow_in_windows();
  void put_in_steps();
  void begin_behind_the_step_before(const Spans& communicates);
  void leave_out_untimed();
  void fill_cells(const Spans& communicates, const Spans& waits);
  void count_reads();
  void find_unmet();

  const read::Process& rank_;
  std::vector<Step> steps_;
  bool marked_;
  RankFacts& facts_;
  CameLines came_;
  std::vector<Collective> collectives_;
  std::vector<std::pair<std::int64_t, std::uint64_t>>
      reads_;  // copies to the host, and their bytes
  Spans copies_on_device_;
  std::vector<std::int64_t> called_;  // when calls of NCCL were
  Spans computes_;
  Spans unsure_;
  Spans followed_;  // windows
  bool window_ended_ = false;
  Spans windows_;  // of the host's time; empty: there are none
  bool too_many_ = false;
  StageMessages stage_messages_;
};

}  // namespace tprof::why
