#include "export/rank_files.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <set>

#include "export/tables.h"
#include "stats/timed_calls.h"

namespace tprof::trace_export {
namespace {

using read::Process;

constexpr std::size_t kFull = std::size_t{1} << 20;

// The file of one rank, while its lines are read.
struct RankFile {
  std::int64_t rank = 0;
  std::vector<const Process*> processes{};
  std::size_t unread = 0;  // how many of `processes` are unread
  bool damaged = false;
  std::unique_ptr<RankFormat> format{};
  std::filesystem::path path{};
  gzFile file = nullptr;
  std::string text{};

  RankFile() = default;
  RankFile(const RankFile&) = delete;
  RankFile& operator=(const RankFile&) = delete;
  ~RankFile() {
    if (file != nullptr) gzclose(file);
  }
};

[[noreturn]] void fail(const std::filesystem::path& file) {
  throw CantWrite(file, errno == 0 ? "can't be written" : std::strerror(errno));
}

class Writer {
 public:
  Writer(const MakeRankFormat& make, NewOutput& to) : make_(make), to_(to) {}

  void open(RankFile& r) {
    if (r.format != nullptr) return;
    r.format = make_(r.processes);
    const std::string name = r.format->file_name();
    r.path = to_.part() / name;
    errno = 0;
    const int fd = to_.file(name);
    if (fd < 0) fail(r.path);
    r.file = gzdopen(fd, name.ends_with(".gz") ? "wb" : "wbT");
    if (r.file == nullptr) {
      close(fd);
      fail(r.path);
    }
    r.format->begin(r.text);
  }

  void write(RankFile& r) {
    errno = 0;
    const auto size = static_cast<unsigned>(r.text.size());
    if (size != 0 && gzwrite(r.file, r.text.data(), size) != static_cast<int>(size)) fail(r.path);
    r.text.clear();
  }

  void finish(RankFile& r, RankFiles& all) {
    if (r.format == nullptr) return;
    const bool kept = !r.damaged && r.format->timed() != 0;
    if (kept) {
      r.format->end(r.text);
      write(r);
    }
    errno = 0;
    const int closed = gzclose(r.file);
    r.file = nullptr;
    if (!kept) {
      std::filesystem::remove(r.path);
    } else if (closed != Z_OK) {
      fail(r.path);
    }
    if (kept) all.written.push_back(r.rank);
    if (!kept && !r.damaged) all.untimed.push_back(r.rank);
  }

 private:
  const MakeRankFormat& make_;
  NewOutput& to_;
};

using OfProcess = std::map<const Process*, RankFile*>;

void read_trace(const read::Trace& trace, const Exported& of, const OfProcess& files,
                Writer& writer) {
  std::map<const Process*, stats::TimedCalls> calls;
  bool looks = false;
  const auto full = [&](RankFile& r) {
    if (looks) r.text.clear();
    if (r.text.size() >= kFull) writer.write(r);
  };
  for (const Process& p : trace.processes) {
    const auto found = files.find(&p);
    if (found == files.end()) continue;
    RankFile& r = *found->second;
    writer.open(r);
    calls.try_emplace(&p, [&r, &p, &full](const read::Event& e, const read::DeviceTime* t) {
      if (!e.chosen) return;
      r.format->call(p, e, t, r.text);
      full(r);
    });
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
  std::map<RankFile*, std::vector<const Process*>> ranks;
  for (const Process& p : trace.processes) {
    if (const auto found = files.find(&p); found != files.end()) ranks[found->second].push_back(&p);
  }
  for (const auto& [r, processes] : ranks) {
    writer.write(*r);
    looks = r->format->look(processes) || looks;
  }
  if (looks) read::read_lines(trace, reader);
  looks = false;
  for (const auto& [r, processes] : ranks) r->format->looked(r->text);
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
    r.rank = *p->header.rank;
    r.processes.push_back(p);
    ++r.unread;
    files[p] = &r;
  }
  Writer writer(make, to);
  std::size_t done = 0;
  for (const read::Trace& trace : traces.traces) {
    std::set<RankFile*> here;
    for (const Process& p : trace.processes) {
      const auto found = files.find(&p);
      if (found == files.end()) continue;
      here.insert(found->second);
      --found->second->unread;
    }
    try {
      if (!here.empty()) read_trace(trace, of, files, writer);
    } catch (const CantWrite&) {
      throw;
    } catch (const read::BadInput& e) {
      skipped.push_back({std::string(e.what()) + "; left out", true});
      for (RankFile* r : here) r->damaged = true;
    }
    for (RankFile* r : here) {
      if (r->unread == 0) writer.finish(*r, all);
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
