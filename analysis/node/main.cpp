// The program `tprof-node` writes lanes of this node and its GPUs while `tprof run` runs.
//
//   tprof-node FOLDER RUN_ID HOST BOOT_ID METRICS BYTES
//
// METRICS is a value of TPROF_METRICS, BYTES the limit of the file, or 0. Standard input is a
// socket to `tprof run`, which closes it to end the lanes. Standard error is the same socket:
// `tprof run` passes on our messages.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstring>

#include "interpose/base/background_thread.h"
#include "interpose/base/clock.h"
#include "interpose/base/complain.h"
#include "interpose/base/disk_space.h"
#include "interpose/base/hash.h"
#include "interpose/base/text.h"
#include "node/gpus.h"
#include "node/host.h"
#include "node/lane_file.h"
#include "read/node_metrics.h"

namespace tprof::node {
namespace {

constexpr int kParent = STDIN_FILENO;

// Chooses one of several tprof-node on a node, as each `tprof run` of a job starts one.
enum class Turn : std::uint8_t { at_once, after_another, never };

// A name in the abstract socket namespace: there is no file, and the kernel frees it when its owner
// ends.
struct Name {
  sockaddr_un address{};
  socklen_t size = 0;

  Name(const char* folder, std::string_view run_id) {
    address.sun_family = AF_UNIX;
    const FileId id = file_at(folder);
    FixedText text(address.sun_path + 1, sizeof address.sun_path - 1);
    text << "tprof-node-";
    text.number(static_cast<std::int64_t>(mix64(id.device ^ mix64(id.inode ^ fnv1a(run_id)))));
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

// Waits until the peer of `other` ends, or for `ms`. Returns true if our parent has gone.
bool parent_gone(int parent, int other, int ms) {
  pollfd on[] = {{parent, POLLIN, 0}, {other, POLLIN, 0}};
  while (poll(on, 2, ms) < 0 && errno == EINTR) {
  }
  return on[0].revents != 0;
}

// Waits until no other tprof-node of this node has the turn for this folder and run; then it is
// ours until we end. never: our parent, the peer of `parent`, has gone.
Turn wait_for_turn(const char* folder, std::string_view run_id, int parent) {
  constexpr int kSoonMs = 10;
  const Name name(folder, run_id);
  for (Turn turn = Turn::at_once;; turn = Turn::after_another) {
    const int mine = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (mine < 0) return Turn::never;
    if (bind(mine, name.get(), name.size) == 0) {
      return listen(mine, SOMAXCONN) == 0 ? turn : Turn::never;
    }
    if (errno != EADDRINUSE) return Turn::never;
    // Nobody accepts the connection; it ends with the program that has the turn.
    const bool connected = connect(mine, name.get(), name.size) == 0;
    // That program does not listen yet, or has just ended.
    const bool soon = !connected && errno == ECONNREFUSED;
    if (!connected && !soon) return Turn::never;
    if (parent_gone(parent, connected ? mine : -1, connected ? -1 : kSoonMs)) return Turn::never;
    close(mine);
  }
}

class Lanes {
 public:
  Lanes(const Wanted& wanted, bool gpus, Turn turn)
      : every_ns_(wanted.every_ns), file_(wanted), host_("") {
    // A turn after another program's end is often short, so it gets a file only after a full
    // period.
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
      gpus_ = -1;  // no more will come
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
  std::signal(SIGXFSZ, SIG_IGN);  // makes writes past the limit fail
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
    tprof::say("tprof-node: only `tprof run` can start it");
    return 2;
  }
  // NVML's exit handlers would wait for a hanging thread.
  _exit(tprof::node::run(argv + 1));
}
