#include "export/rank_files.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <utility>

#include "export/tables.h"
#include "stats/timed_calls.h"

namespace tprof::trace_export {
namespace {

using read::Process;

constexpr std::size_t kFull = std::size_t{1} << 20;

[[noreturn]] void fail(const std::filesystem::path& file) {
  throw CantWrite(file, errno == 0 ? "can't be written" : std::strerror(errno));
}

// The file of one rank, while its lines are read.
class RankFile {
 public:
  RankFile() = default;
  RankFile(const RankFile&) = delete;
  RankFile& operator=(const RankFile&) = delete;
  ~RankFile() {
    if (file_ != nullptr) gzclose(file_);
  }

  void open(const MakeRankFormat& make, NewOutput& to) {
    if (format != nullptr) return;
    format = make(processes);
    const std::string name = format->file_name();
    path_ = to.part() / name;
    errno = 0;
    const int fd = to.file(name);
    if (fd < 0) fail(path_);
    file_ = gzdopen(fd, name.ends_with(".gz") ? "wb" : "wbT");
    if (file_ == nullptr) {
      ::close(fd);
      fail(path_);
    }
    format->begin(text);
  }
  // Writes the text if it is as long.
  void write(std::size_t least = 1) {
    if (text.size() < least) return;
    errno = 0;
    const auto size = static_cast<unsigned>(text.size());
    if (gzwrite(file_, text.data(), size) != static_cast<int>(size)) fail(path_);
    text.clear();
  }
  // Returns false if there is no file: it would be damaged, or have no time of the device.
  bool close() {
    const bool kept = !damaged && format->timed() != 0;
    if (kept) {
      format->end(text);
      write();
    }
    errno = 0;
    const int closed = gzclose(std::exchange(file_, nullptr));
    if (!kept) {
      std::filesystem::remove(path_);
    } else if (closed != Z_OK) {
      fail(path_);
    }
    return kept;
  }

  std::vector<const Process*> processes{};
  std::size_t unread = 0;  // how many of `processes` are unread
  bool damaged = false;
  std::unique_ptr<RankFormat> format{};
  std::string text{};

 private:
  std::filesystem::path path_{};
  gzFile file_ = nullptr;
};

using OfProcess = std::map<const Process*, RankFile*>;
using OfTrace = std::map<RankFile*, std::vector<const Process*>>;

void read_trace(const read::Trace& trace, const Exported& of, const OfProcess& files,
                const OfTrace& here) {
  std::map<const Process*, stats::TimedCalls> calls;
  bool looks = false;
  const auto full = [&](RankFile& r) { looks ? r.text.clear() : r.write(kFull); };
  for (const auto& [file, processes] : here) {
    for (const Process* p : processes) {
      calls.try_emplace(p, [&full, r = file, p](const read::Event& e, const read::DeviceTime* t) {
        if (!e.chosen) return;
        r->format->call(*p, e, t, r->text);
        full(*r);
      });
    }
  }
  read::LineReader reader;
  if (of.asked != nullptr) reader.chosen = of.asked->chosen();
  reader.wanted = [&](const Process& p) { return files.contains(&p); };
  reader.event = [&](const Process& p, const read::Event& e) { calls.at(&p).call(e); };
  reader.device_time = [&](const Process& p, const read::DeviceTime& t) { calls.at(&p).time(t); };
  reader.range = [&](const Process& p, const read::Range& range) {
    if (!of.has_range(p, range.ts_ns)) return;
    RankFile& r = *files.at(&p);
    r.format->range(p, range, r.text);
    full(r);
  };
  reader.end = [&](const Process& p) { calls.at(&p).finish(); };
  for (const auto& [r, processes] : here) {
    r->write();
    looks = r->format->look(processes) || looks;
  }
  if (looks) read::read_lines(trace, reader);
  looks = false;
  for (const auto& [r, processes] : here) r->format->looked(r->text);
  read::read_lines(trace, reader);
}

}  // namespace

RankFiles write_ranks(const Exported& of, const read::Traces& traces, const MakeRankFormat& make,
                      NewOutput& to, std::vector<read::Skipped>& skipped,
                      const std::function<void(std::size_t)>& progress) {
  RankFiles all;
  std::map<std::int64_t, RankFile> ranks;
  OfProcess files;
  for (const auto& [p, rank] : of.ranks) {
    if (!p->header.rank) {
      ++all.without_rank;
      continue;
    }
    RankFile& r = ranks[*p->header.rank];
    r.processes.push_back(p);
    ++r.unread;
    files[p] = &r;
  }
  std::size_t done = 0;
  for (const read::Trace& trace : traces.traces) {
    OfTrace here;
    for (const Process& p : trace.processes) {
      const auto found = files.find(&p);
      if (found == files.end()) continue;
      here[found->second].push_back(&p);
      --found->second->unread;
    }
    try {
      for (const auto& [r, processes] : here) r->open(make, to);
      if (!here.empty()) read_trace(trace, of, files, here);
    } catch (const CantWrite&) {
      throw;
    } catch (const read::BadInput& e) {
      skipped.push_back({std::string(e.what()) + "; left out", true});
      for (const auto& [r, processes] : here) r->damaged = true;
    }
    for (const auto& [r, processes] : here) {
      if (r->unread != 0 || r->format == nullptr) continue;
      const std::int64_t rank = *processes.front()->header.rank;
      if (r->close()) {
        all.written.push_back(rank);
      } else if (!r->damaged) {
        all.untimed.push_back(rank);
      }
    }
    progress(++done);
  }
  std::ranges::sort(all.written);
  std::ranges::sort(all.untimed);
  return all;
}

std::string in_file_name(std::string_view text) {
  std::string name(text.substr(0, 100));
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.') c = '-';
  }
  return name;
}

}  // namespace tprof::trace_export
