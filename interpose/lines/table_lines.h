// Lines of the things that the lines of calls name: communicators, sites, graphs, streams and
// lanes. Each file has them once, before the first line that names them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "interpose/lines/device_lines.h"
#include "interpose/lines/ledger_lines.h"
#include "interpose/lines/lines.h"
#include "interpose/lines/range_lines.h"

namespace tprof {

// Writes the communicators behind `done`. `world`: the size of the largest so far, whose rank is
// the process's.
[[gnu::cold]] inline void communicator_lines(Text& out, const View& view, std::uint32_t& done,
                                             std::int32_t& world) {
  const Head& head = view.head();
  const std::uint32_t comms = View::entries(head.comms);
  while (done < comms) {
    comm_line(out, view, ++done);
    const Communicator* larger = head.rank_known ? nullptr : larger_comm(view, done, world);
    if (larger == nullptr) continue;
    world = larger->nranks;
    identity_line(out, view, *larger);
  }
}

// Writes the lines that the file has not. `last`: includes captures that nobody will end any more.
[[gnu::cold]] inline void table_lines(Text& out, const View& view, Sums& sums, const Progress& p,
                                      FileLines& file, bool last) {
  communicator_lines(out, view, file.comms, file.world);
  const std::uint32_t sites = View::entries(view.head().sites);
  while (file.sites < sites) site_line(out, view, ++file.sites);
  const std::uint32_t streams = std::min(p.streams, kMaxStreams);
  for (; file.streams < streams; ++file.streams) {
    stream_line(out, view, file.streams + 1, p.stream[file.streams]);
  }
  const std::uint32_t graphs = View::entries(view.head().graphs);
  std::uint32_t until = file.graphs;
  const auto complete = [&](std::uint32_t index) {
    const Graph* g = view.graph(index);
    return last || g == nullptr || g->complete.load(std::memory_order_acquire) != 0;
  };
  while (until < graphs && complete(until + 1)) ++until;
  if (until <= file.graphs) return;
  collect_graphs(view, sums, file.graphs + 1);
  if (sums.all.failed()) return out.fail();
  const Total* row = sums.all.begin();
  while (file.graphs < until) graph_line(out, view, row, sums.all.end(), ++file.graphs);
}

// Returns a short number for a handle of 14 digits; the default stream's is 0. table_lines() writes
// a new one's line.
inline std::uint32_t stream_number(Progress& p, std::uint64_t handle) {
  if (handle == 0) return 0;
  const std::uint32_t known = std::min(p.streams, kMaxStreams);
  for (std::uint32_t i = 0; i < known; ++i) {
    if (p.stream[i] == handle) return i + 1;
  }
  if (known == kMaxStreams) {
    p.streams = kMaxStreams + 1;
    return kStreamUnknown;
  }
  p.stream[known] = handle;
  return p.streams = known + 1;
}

// True the first time: a lane has one name in a file.
template <std::size_t N>
bool first_of(std::uint64_t (&named)[N], std::uint32_t lane) {
  const std::uint64_t bit = std::uint64_t{1} << lane % 64;
  const bool first = (named[lane / 64] & bit) == 0;
  named[lane / 64] |= bit;
  return first;
}

// Names the lane of a stream for viewers, by the stream's number.
inline void name_stream_lane(Text& out, const View& view, FileLines& file, std::uint32_t stream) {
  const std::uint32_t lane = stream == kStreamUnknown ? kMaxStreams + 1 : stream;
  if (first_of(file.stream_lane, lane)) device_lane_line(out, view, lane);
}

// Names the lane of what a device computed.
inline void name_device_lane(Text& out, const View& view, FileLines& file, std::uint32_t device) {
  if (device < 64 && first_of(file.device_lane, device)) busy_lane_line(out, view, device);
}

// Names the lane of thread `i`, or of its ranges, in a window's file that does not have it yet.
// (The rank file gets it from the thread's own record.)
inline void name_thread_lane(Text& out, const View& view, const Progress& p, FileLines& file,
                             std::uint32_t i, bool ranges) {
  auto& named = ranges ? file.range_lane : file.thread_lane;
  const ThreadArea* t = view.thread(i);
  const std::uint32_t tid = p.tid[i];
  if ((named[i / 64] >> i % 64 & 1) != 0 || t == nullptr || tid == 0) return;
  if (t->named.load(std::memory_order_acquire) != tid) return;
  char name[kThreadNameBytes + 1] = {};
  std::memcpy(name, t->name, kThreadNameBytes);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (t->named.load(std::memory_order_relaxed) != tid) return;
  first_of(named, i);
  ranges ? range_lane_line(out, view, tid, name) : thread_name_line(out, view, tid, name);
}

}  // namespace tprof
