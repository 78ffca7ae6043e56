// The program `tprof-node`: writes lanes of this node, and of its GPUs, while `tprof run` is there.
//
//   tprof-node FOLDER RUN_ID HOST BOOT_ID METRICS BYTES
//
// METRICS is a value of TPROF_METRICS, BYTES the most that the file may have, or 0. `tprof run` is
// at the other end of standard input, which ends when it wants no more. Standard error is the same
// socket: `tprof run` passes on what we say.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstring>

#include "interpose/base/background_thread.h"
#include "interpose/base/clock.h"
#include "interpose/base/complain.h"
#include "interpose/format/metrics.h"
#include "interpose/lines/metric_lanes.h"
#include "node/gpus.h"
#include "node/host.h"
#include "node/lane_file.h"
#include "node/turn.h"

namespace tprof::node {
namespace {

constexpr int kParent = STDIN_FILENO;

class Lanes {
 public:
  Lanes(const Wanted& wanted, bool gpus, Turn turn)
      : every_ns_(wanted.every_ns), file_(wanted), host_("") {
    // A turn that comes when another program has ended often ends soon as well: only one that lasts
    // for a period has a file.
    const std::uint64_t now = now_ns();
    const bool first = turn == Turn::at_once;
    next_ns_ = first ? now : now + every_ns_;
    if (!first) host_.read(last_);
    if (gpus) gpus_ = begin_gpus(every_ns_, next_ns_);
  }

  void until_parent_ends() {
    for (;;) {
      const std::uint64_t now = now_ns();
      if (now >= next_ns_) {
        read_host();
        next_ns_ += ((now - next_ns_) / every_ns_ + 1) * every_ns_;
      }
      pollfd on[] = {{kParent, POLLIN, 0}, {gpus_, POLLIN, 0}};
      const std::uint64_t ms = next_ns_ > now ? (next_ns_ - now) / 1'000'000 + 1 : 0;
      if (poll(on, 2, static_cast<int>(ms)) <= 0) continue;
      if (on[0].revents != 0) break;
      if (on[1].revents != 0) read_gpu();
    }
    if (last_.at_ns != kNotRead && now_ns() - last_.at_ns >= kShortestMetricsNs) read_host();
    file_.end();
  }

 private:
  template <typename Reading>
  void show(const Reading& before, const Reading& now, std::string_view prefix) {
    metrics::each_lane(before.at_ns == kNotRead ? nullptr : &before, now, prefix,
                       [&](const Counter& c) { file_.add(c, now.at_ns); });
    file_.write();
  }

  void read_host() {
    const HostMetrics before = last_;
    host_.read(last_);
    show(before, last_, "");
  }

  void read_gpu() {
    GpuReading now;
    if (read(gpus_, &now, sizeof now) != sizeof now) {
      gpus_ = -1;  // there will be no more
      return;
    }
    char prefix[16];
    const auto text = (FixedText(prefix) << kGpuPrefix).number(now.device) << " ";
    show(shown_[now.device], now.metrics, text.view());
    shown_[now.device] = now.metrics;
  }

  std::uint64_t every_ns_;
  std::uint64_t next_ns_;
  LaneFile file_;
  Host host_;
  HostMetrics last_;
  int gpus_ = -1;
  GpuMetrics shown_[kMostGpus];
};

int run(char** argument) {
  MetricsWanted metrics;
  Wanted wanted{argument[0], argument[1], argument[2], argument[3], 0, 0};
  const std::string_view bytes = argument[5];
  const char* const end = bytes.data() + bytes.size();
  const auto [rest, error] = std::from_chars(bytes.data(), end, wanted.most_bytes);
  if (!parse_metrics(argument[4], metrics) || metrics.every_ns == 0 || error != std::errc() ||
      rest != end) {
    say("tprof-node: expected a period and a number of bytes");
    return 2;
  }
  wanted.every_ns = metrics.every_ns;
  become_background("tprof-node");
  std::signal(SIGXFSZ, SIG_IGN);  // a write that goes too far fails
  const Turn turn = wait_for_turn(wanted.folder, wanted.run_id, kParent);
  if (turn == Turn::never) return 0;
  Lanes lanes(wanted, metrics.gpus, turn);
  lanes.until_parent_ends();
  return 0;
}

}  // namespace
}  // namespace tprof::node

int main(int argc, char** argv) {
  if (argc != 7) {
    tprof::say("tprof-node: only `tprof run` knows how to start it");
    return 2;
  }
  // NVML's exit handlers would wait for a thread that hangs in it.
  _exit(tprof::node::run(argv + 1));
}
