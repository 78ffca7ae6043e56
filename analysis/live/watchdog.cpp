#include "live/watchdog.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <stdexcept>

#include "live/shell.h"
#include "read/ring_file.h"
#include "report/findings.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::live {

namespace {

// True for kinds that are reported once two looks agree. One look is not enough, since a rank that
// only waits may look stuck a moment before those that it waits for. Other kinds are normal for a
// while when a job begins or ends: missing ranks, incomplete files.
bool is_certain(check::Kind kind) {
  using check::Kind;
  return kind == Kind::hang || kind == Kind::group_order || kind == Kind::mismatch;
}

std::chrono::nanoseconds cpu_time() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

constexpr std::string_view kPid = "{pid}";
constexpr std::string_view kRank = "{rank}";
constexpr std::size_t kMostTargets = 16;

bool contains(const std::string& text, std::string_view word) {
  return text.find(word) != std::string::npos;
}

std::string json_of(const NewFinding& told) {
  report::Json j = report::to_json({*told.finding}, report::Detail::full)[0];
  auto& processes = j["processes"] = nlohmann::json::array();
  for (const Target& t : told.targets) processes.push_back({{"rank", t.rank}, {"pid", t.pid}});
  return report::printed(j, -1);
}

// Returns an unnamed file with the text, positioned at its beginning. A pipe might be full, or read
// by nobody.
int file_of(const std::string& text) {
  const int fd = memfd_create("tprof-finding", MFD_CLOEXEC);
  const bool whole =
      fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!whole || lseek(fd, 0, SEEK_SET) != 0) {
    throw std::runtime_error(fmt::format("memfd_create: {}", std::strerror(errno)));
  }
  return fd;
}

void run(const std::string& command, const std::string& input, const sigset_t& mask) {
  const int fd = file_of(input);
  const int status = run_in_shell(command, fd, mask, Group::ours);
  close(fd);
  if (status == 0) return;
  text::say("tprof: {}: {}\n", text::printable(command), how_it_ended(status));
}

// Returns false if it was not run for lack of a target.
bool run_for(const std::string& command, const std::vector<NewFinding>& findings,
             const sigset_t& mask) {
  if (!contains(command, kPid) && !contains(command, kRank)) {
    std::string input;
    for (const NewFinding& f : findings) input += json_of(f);
    run(command, input, mask);
    return true;
  }
  bool any = false;
  for (const NewFinding& f : findings) {
    for (const Target& t : f.targets) {
      const std::string pid = std::to_string(t.pid);
      run(text::replaced(command, {{kPid, pid}, {kRank, std::to_string(t.rank)}}), json_of(f),
          mask);
      any = true;
    }
  }
  return any;
}

}  // namespace

bool descends_from(std::int64_t pid, std::int64_t ancestor) {
  while (pid > 1 && pid != ancestor) {
    const auto stat = read::proc_stat(pid);
    pid = stat ? stat->parent : 0;
  }
  return pid == ancestor;
}

check::Diagnosed Watchdog::check(bool lines) const {
  return check::diagnose(*look_.job, look_.traces,
                         {.read_lines = lines, .stuck_after_ns = watched_.stuck_after.count()});
}

// True if all lines have to be read. A process that goes on calling, and has no long open call, is
// not stuck.
bool Watchdog::may_be_stuck() {
  const auto now = Clock::now();
  bool may = false;
  std::map<std::int64_t, Progress> progress;
  for (const Rank& rank : ranks_of(look_)) {
    if (rank.process->end != read::End::running) continue;
    const std::int64_t pid = rank.process->header.pid;
    const auto before = progress_.find(pid);
    const bool still = before != progress_.end() && before->second.calls == rank.all.calls;
    const Progress mine = {rank.all.calls, still ? before->second.since : now};
    progress.emplace(pid, mine);
    may = may || now - mine.since >= watched_.stuck_after ||
          (!rank.open.empty() && rank.open[0].age_ns >= watched_.stuck_after.count());
  }
  progress_ = std::move(progress);
  return may;
}

bool Watchdog::look() {
  said_.reset();  // it refers to traces that are freed now
  look_ = look_at(watched_.folder, watched_.choice, read::Wanted::counts);
  if (!look_.job) return false;
  said_ = check(false);
  const bool worse = !check::healthy(said_->findings);
  if (may_be_stuck() || worse || look_.over()) {
    said_.reset();
    look_ = look_at(watched_.folder, watched_.choice, read::Wanted::lines);
    if (!look_.job) return false;
    said_ = check(true);
  }
  const bool over = look_.over();
  report_new(over);
  return over;
}

bool Watchdog::look_until_over(Signals& signals, std::chrono::nanoseconds interval) {
  constexpr int kShare = 20;  // looking takes at most 1/20 of a core
  for (;;) {
    const auto before = cpu_time();
    if (look()) return true;
    const auto took = cpu_time() - before;
    if (signals.wait(std::max(interval, kShare * took)) == Woken::end) return false;
  }
}

std::chrono::nanoseconds Watchdog::often_enough() const {
  using std::chrono::nanoseconds;
  return std::clamp<nanoseconds>(watched_.stuck_after / 4, std::chrono::milliseconds(100),
                                 std::chrono::seconds(5));
}

void Watchdog::report_new(bool over) {
  const auto now = Clock::now();
  std::map<check::Kind, Found> found;
  for (const check::Finding& f : said_->findings) {
    const bool wanted = !watched_.wanted || watched_.wanted(f);
    if (f.severity == check::Severity::note || !wanted) continue;
    const auto before = found_.find(f.kind);
    Found& mine = found[f.kind];
    mine.since = before == found_.end() ? now : before->second.since;
    mine.ranks.push_back(f.ranks);
    mine.new_findings.push_back({&f, targets_of(f)});
  }
  for (auto& [kind, mine] : found) {
    const auto before = found_.find(kind);
    const bool alike = before != found_.end() && before->second.ranks == mine.ranks;
    const bool stays = is_certain(kind) ? alike : now - mine.since >= watched_.stuck_after;
    if ((stays || over) && !told_.contains(kind)) tell(kind, mine.new_findings);
    mine.new_findings.clear();  // it refers to traces that are freed
  }
  found_ = std::move(found);
}

std::vector<Target> Watchdog::targets_of(const check::Finding& finding) const {
  std::vector<Target> targets;
  const std::string here = read::boot_id();
  const std::uint64_t pids = read::own_pid_namespace();
  for (const read::Process* p : look_.job->processes) {
    const read::Header& h = p->header;
    const bool runs = p->end == read::End::running && !p->snapshot && h.boot_id == here;
    // A command can't use a pid of another container.
    if (h.pid_namespace != 0 && h.pid_namespace != pids) continue;
    if (!runs || !h.rank || !finding.ranks.contains(*h.rank)) continue;
    if (std::ranges::count(targets, h.pid, &Target::pid) != 0) continue;  // it holds several ranks
    const Target target = {*h.rank, h.pid};
    if (watched_.is_ours && !watched_.is_ours(target)) continue;
    if (targets.size() < kMostTargets) targets.push_back(target);
  }
  return targets;
}

void Watchdog::tell(check::Kind kind, const std::vector<NewFinding>& findings) {
  const bool nobodys =
      std::ranges::all_of(findings, [](const NewFinding& f) { return f.targets.empty(); });
  if (watched_.is_ours && nobodys) return;
  told_.insert(kind);
  for (const NewFinding& f : findings) watched_.tell(*f.finding);
  if (watched_.command.empty()) return;
  if (!run_for(watched_.command, findings, mask_)) {
    text::say("tprof: none of its processes runs here, so this was not run: {}\n",
              text::printable(watched_.command));
  }
}

}  // namespace tprof::live
