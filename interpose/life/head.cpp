#include "interpose/life/head.h"

#include <atomic>
#include <cstring>

#include "interpose/api/functions.h"
#include "interpose/format/commit.h"
#include "interpose/session/session.h"

namespace tprof {

void fill_head(Head& head, const Process& process, const RankFile& file,
               const ClockAnchor& anchor) {
  const Config& config = session::config();
  head.layout = kRingLayout;
  head.head_size = sizeof(Head);
  copy_text(head.version, kVersion);
  copy_text(head.boot_id, process.boot_id);
  head.pid = process.pid;
  head.pid_namespace = process.pid_namespace;
  head.start_ticks = process.start_ticks;
  copy_text(head.rank_file, file.name);
  copy_text(head.directory, file.directory);
  head.base_mono_ns = anchor.mono_ns;
  head.base_real_ns = anchor.real_ns;
  head.rank_known = process.rank >= 0;
  head.line_pid = process.rank >= 0 ? process.rank : process.pid;
  head.quota = config.quota;
  const bool lines = config.ranks.has(process.rank);
  head.events = static_cast<std::uint32_t>(lines ? config.events : EventLines::off);
  copy_text(head.ops, config.ops);
  copy_text(head.sizes, config.sizes);
  head.copy_element_size = config.copy_element_size;
  copy_text(head.step_mark, config.step);
  copy_text(head.windows.schedule, config.schedule.text);
  head.windows.files = config.window_files;
  head.comms.entry_size = sizeof(Communicator);
  head.graphs.entry_size = sizeof(Graph);
  head.sites.entry_size = sizeof(Site);
  head.site_objects.entry_size = sizeof(SiteObject);
  head.scopes.entry_size = sizeof(ScopeName);
  head.functions = kFunctionCount;
  for (std::size_t i = 1; i < kFunctionCount; ++i) {
    copy_text(head.function[i].name, kFunctions[i].name);
    head.function[i].elements = kFunctions[i].elements;
    head.function[i].collective = kFunctions[i].order == Order::collective;
  }
}

bool write_header(Mapping& mapping, const Text& header) {
  const std::uint64_t at = header.failed() ? 0 : mapping.allocate(header.size());
  if (at == 0) return false;
  std::memcpy(mapping.at<char>(at), header.data(), header.size());
  Head& head = mapping.head();
  head.header = at;
  head.header_bytes = header.size();
  static constinit Progress begin{};  // 16 KiB, of which a small stack has no room
  begin.written.file[kRankFile].offset = header.size();
  commit_progress(head, begin);
  std::atomic_signal_fence(std::memory_order_release);
  std::memcpy(head.magic, kRingMagic, sizeof head.magic);
  return true;
}

}  // namespace tprof
