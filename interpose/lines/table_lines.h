// Lines of the things that the lines of calls name: communicators, sites, graphs, streams and
// lanes. Each file has them once, before the first line that names them; `TableLines` says how far
// a file has got.
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
    const Communicator* larger = head.rank_known ? nullptr : larger_own_comm(view, done, world);
    if (larger == nullptr) continue;
    world = larger->nranks;
    identity_line(out, view, *larger);
  }
}

// `last`: includes captures that nobody will end any more.
[[gnu::cold]] inline void table_lines(Text& out, const View& view, Sums& sums, TableLines& t,
                                      bool last) {
  communicator_lines(out, view, t.comms, t.world);
  const std::uint32_t sites = View::entries(view.head().sites);
  while (t.sites < sites) site_line(out, view, ++t.sites);
  const std::uint32_t graphs = View::entries(view.head().graphs);
  if (t.graphs >= graphs) return;
  std::uint32_t until = t.graphs;
  const auto complete = [&](std::uint32_t index) {
    const Graph* g = view.graph(index);
    return last || g == nullptr || g->complete.load(std::memory_order_acquire) != 0;
  };
  while (until < graphs && complete(until + 1)) ++until;
  if (until == t.graphs) return;
  collect_graphs(view, sums, t.graphs + 1);
  if (sums.all.failed()) return out.fail();
  const Total* row = sums.all.begin();
  while (t.graphs < until) graph_line(out, view, row, sums.all.end(), ++t.graphs);
}

// Returns a short number for a handle of 14 digits; the default stream's is 0. A new one's line
// goes to `out`, the rank file.
inline std::uint32_t stream_number(Text& out, const View& view, Progress& p, std::uint64_t handle) {
  if (handle == 0) return 0;
  std::uint32_t& streams = p.tables.streams;
  const std::uint32_t known = std::min(streams, kMaxStreams);
  for (std::uint32_t i = 0; i < known; ++i) {
    if (p.stream[i] == handle) return i + 1;
  }
  if (known == kMaxStreams) {
    streams = kMaxStreams + 1;
    return kStreamUnknown;
  }
  p.stream[known] = handle;
  streams = known + 1;
  stream_line(out, view, streams, handle);
  return streams;
}

// Writes the lines of all streams with a number, for a file that has those up to `tables.streams`.
[[gnu::cold]] inline void stream_lines(Text& out, const View& view, const Progress& p,
                                       TableLines& tables) {
  const std::uint32_t known = std::min(p.tables.streams, kMaxStreams);
  for (std::uint32_t& n = tables.streams; n < known; ++n) {
    stream_line(out, view, n + 1, p.stream[n]);
  }
}

// Names the lane of a stream for viewers, by the stream's number.
[[gnu::cold]] inline void name_device_lane(Text& out, const View& view, TableLines& tables,
                                           std::uint32_t stream) {
  const std::uint32_t lane = stream == kStreamUnknown ? kMaxStreams + 1 : stream;
  std::uint64_t& named = tables.device_lane[lane / 64];
  if ((named >> lane % 64 & 1) == 0) device_lane_line(out, view, lane);
  named |= std::uint64_t{1} << lane % 64;
}

// Names the lane of what a device computed.
[[gnu::cold]] inline void name_busy_lane(Text& out, const View& view, TableLines& tables,
                                         std::uint32_t device) {
  if (device >= 64 || (tables.busy_lane >> device & 1) != 0) return;
  busy_lane_line(out, view, device);
  tables.busy_lane |= std::uint64_t{1} << device;
}

// Names the lane of thread `i`, or of its ranges, in a window's file that does not have it yet.
// (The rank file gets it from the thread's own record.)
[[gnu::cold]] inline void name_thread_lane(Text& out, const View& view, const Progress& p,
                                           WindowFile& file, std::uint32_t i, bool ranges) {
  std::uint64_t& named = (ranges ? file.range_lane_named : file.thread_named)[i / 64];
  const std::uint64_t bit = std::uint64_t{1} << i % 64;
  const ThreadArea* t = view.thread(i);
  const std::uint32_t tid = p.tid[i];
  if ((named & bit) != 0 || t == nullptr || tid == 0) return;
  if (t->named.load(std::memory_order_acquire) != tid) return;
  char name[kThreadNameBytes + 1] = {};
  std::memcpy(name, t->name, kThreadNameBytes);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (t->named.load(std::memory_order_relaxed) != tid) return;
  named |= bit;
  ranges ? range_lane_line(out, view, tid, name) : thread_name_line(out, view, tid, name);
}

}  // namespace tprof
