// The lines of a job are loaded once, and shown as they are in the files.
#include <atomic>
#include <climits>
#include <string>
#include <vector>

#include "analysis_traces.h"
#include "catch2.h"
#include "job/choice.h"
#include "report/views.h"
#include "run/kept_lines.h"
#include "run/lines.h"
#include "summary/summary.h"

using namespace tprof;
using namespace tprof::test;
using read::Busy;
using read::DeviceTime;
using read::Event;

namespace {

// Notes what was shown, and in which order.
struct SeenLines {
  SeenLines() = default;
  explicit SeenLines(const read::Process& /*any*/) {}
  void call(const Event& e) { add("call", e); }
  void launch(const Event& e) { add("launch", e); }
  void last_call(const Event& e) { add("last", e); }
  void device_time(const DeviceTime& t) {
    times.push_back(t);
    order += "time ";
  }
  void busy(const Busy& b) {
    busies.push_back(b);
    order += "busy ";
  }
  void range(const read::Range& r) {
    order += fmt::format("range {} {} {} {} {} {} {} {} {} {} {} {} {} {} ",
                         static_cast<int>(r.phase), r.name, r.domain.value_or("none"), r.thread,
                         r.ts_ns, r.dur_ns, r.id, r.category, r.category_name, r.color,
                         static_cast<double>(r.payload.value_or(-1)), r.elements, r.bytes, r.error);
  }
  void life(const read::LifeCall& c) { lives.push_back(c); }
  void thread(const read::ThreadName& t) { order += t.name + std::to_string(t.thread) + " "; }
  void metadata(const read::Line& line) {
    order += std::string(line.text) + std::to_string(line.offset) + " ";
  }
  void end() { order += "end"; }

  void add(const char* what, const Event& e) {
    events.push_back(e);
    order += std::string(what) + " ";
  }

  std::vector<Event> events;
  std::vector<DeviceTime> times;
  std::vector<Busy> busies;
  std::vector<read::LifeCall> lives;
  std::string order;
};

Event kept_event(const char* name, std::int64_t ts, std::int64_t dur, std::uint64_t seq) {
  Event e;
  e.name = name;
  e.ts_ns = ts;
  e.dur_ns = dur;
  e.seq = seq;
  e.numbered = true;
  e.comm = 1;
  return e;
}

std::string call_and_time(int seq) {
  const std::string at = std::to_string(1 + seq * 10);
  return R"({"name":"ncclAllGather","cat":"ALLGATHER","ph":"X","pid":0,"tid":7,"ts":)" + at +
         R"(.000,"dur":2.000,"args":{"comm":1,"seq":)" + std::to_string(seq) +
         R"(,"count":50,"dtype":"uint8","bytes":100}},)"
         "\n"
         R"({"name":"ncclAllGather","cat":"DEVICE","ph":"X","pid":0,"tid":7,"ts":)" +
         at + R"(.500,"dur":3.000,"args":{"comm":1,"seq":)" + std::to_string(seq) +
         R"(,"calls":1,"queued":0.000,"call_tid":7}},)" + "\n";
}

// Ranks that issue the same gathers. The lines of the last can't be read if `bad`.
read::Traces some_ranks(const Folder& folder, int ranks, bool bad = false) {
  read::Traces traces;
  for (int rank = 0; rank < ranks; ++rank) {
    std::string text =
        "[\n" + header({.pid = 100 + rank, .rank = std::to_string(rank), .world_size = "5"});
    text += comm(1, "aa");
    for (int seq = 0; seq < 40; ++seq) text += call_and_time(seq);
    if (bad && rank + 1 == ranks) text += "{\"name\":\"ncclAllGather\",\"ts\":oh,\n";
    text += ledger(row("ALLGATHER", "ncclAllGather", "1", "direct", 40)) + footer();
    traces.traces.push_back(read::load(folder.write("r" + std::to_string(rank), text)));
  }
  return traces;
}

}  // namespace

TEST_CASE("what was kept is shown again: every field, in the order of the lines") {
  read::Process rank;
  std::atomic<std::size_t> bytes = 0;
  run::KeptLines kept;
  run::Keeper keeper(bytes, kept);
  SeenLines seen;
  keeper.of(rank);
  std::int64_t ts = 1;
  std::size_t lines = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto n = static_cast<std::uint64_t>(i);
    ts += i % 7 == 0 ? -3 : 1000 * i;
    Event e = kept_event(i % 3 == 0 ? "ncclAllGather" : "ncclAllReduce", ts, i % 5 - 1, n / 2);
    if (i % 11 == 0) e.reduce = "sum";
    if (i % 13 == 0) e.peer = i % 2;
    if (i % 19 == 0) e.stream = std::nullopt;
    if (i % 6 < 2) e.group = i / 6 + 1;
    e.thread = 1'000'000 + i / 100;
    e.bytes = i % 23 == 0 ? n : 8;
    e.count = e.bytes / 4;
    if (i % 50 == 7) {
      keeper.launch(e);
      seen.launch(e);
    } else if (i % 50 == 8) {
      keeper.last_call(e);
      seen.last_call(e);
    } else {
      keeper.call(e);
      seen.call(e);
    }
    DeviceTime t;
    t.name = e.name;
    t.ts_ns = ts + 17;
    t.dur_ns = 100 * i;
    t.queued_ns = 18;
    t.calls = n % 3;
    t.thread = e.thread;
    if (i % 4 != 0) t.seq = n;
    if (i % 4 == 1) t.comm = 2;
    if (i % 9 == 0) t.waited_ns = i;
    keeper.device_time(t);
    seen.device_time(t);
    lines += 2;
    if (i % 10 == 0) {
      const Busy b{.device = i % 2, .ts_ns = ts, .dur_ns = i, .unsure = i == 0, .lane = 5};
      keeper.busy(b);
      seen.busy(b);
    }
    if (i % 1000 != 0) continue;
    keeper.thread({i, "thread"});
    seen.thread({i, "thread"});
    read::Range r;
    r.phase = i == 0 ? read::Range::Phase::open : read::Range::Phase::started;
    r.name = "step " + std::to_string(i);
    if (i != 0) r.domain = "tprof";
    r.thread = i - 5;
    r.ts_ns = ts;
    r.dur_ns = 7;
    r.id = i == 0 ? "" : "0x7";
    r.category = -3;
    r.color = "#ff0000";
    if (i != 0) r.payload = 0.25L;
    r.bytes = UINT64_MAX;
    r.error = "ValueError";
    keeper.range(r);
    seen.range(r);
    read::LifeCall c;
    c.name = "ncclCommSplit";
    c.grouped = i == 0;
    c.unfinished = i == 1000;
    c.ts_ns = -ts;
    c.dur_ns = i;
    c.thread = i;
    if (i != 0) c.comm = i;
    c.id = "ab";
    c.seq = n;
    c.nranks = 4;
    if (i == 0) c.rank = -1;
    c.result = 3;
    keeper.life(c);
    seen.life(c);
    const std::string text = "{\"name\":\"tprof_step\"," + std::to_string(i) + "}";
    keeper.metadata({text, n * 1000});
    seen.metadata({text, n * 1000});
  }
  for (const std::int64_t end : {INT64_MIN, INT64_MAX, std::int64_t{0}, INT64_MIN}) {
    const Event e = kept_event("ncclAllGather", end, end, static_cast<std::uint64_t>(end));
    keeper.call(e);
    seen.call(e);
  }
  keeper.end();
  CHECK(kept.bytes() < 14 * lines);
  std::vector<std::unique_ptr<run::Shown<SeenLines>>> again;
  again.emplace_back(new run::Shown<SeenLines>{rank, SeenLines()});
  kept.show(rank, run::reader_of(again));
  const SeenLines& shown = again[0]->made;
  CHECK(shown.order == seen.order);
  CHECK(shown.events == seen.events);
  CHECK(shown.times == seen.times);
  CHECK(shown.busies == seen.busies);
  CHECK(shown.lives == seen.lives);
}

TEST_CASE("lines are loaded when somebody asks, once for all, and not for counts") {
  const Folder folder;
  read::Traces traces = some_ranks(folder, 2);
  const job::Job job = job::one_job(traces, {});
  std::atomic<int> files{0};
  const run::Lines lines(job, traces, [&](std::size_t) { ++files; });
  tables::summarise(lines, {});
  CHECK(files == 0);
  const filter::Selection named(lines, filter::parsed({.ops = "allg*", .comms = "aa"}), {});
  CHECK(files == 0);
  tables::SummaryOptions all;
  all.read_lines = all.op_times = all.steps = true;
  all.top = 3;
  all.histogram = tables::HistogramOptions{.name = "ncclAllGather"};
  const tables::Summary summary = tables::summarise(lines, all);
  for (const report::ByRow& by : report::by_rows()) by.sections(summary, report::For::programs);
  const filter::Selection asked(lines, filter::parsed({.phases = "other"}), {});
  CHECK(files == 2);
}

TEST_CASE("ranks beyond the memory are read again each time, with the same answers") {
  const Folder folder;
  read::Traces traces = some_ranks(folder, 5, true);
  const job::Job job = job::one_job(traces, {});
  std::vector<std::string> said;
  for (const std::size_t bytes : {run::Lines::kMostBytes, std::size_t{2000}, std::size_t{0}}) {
    const run::Lines lines(job, traces, {}, bytes);
    for (int times = 0; times < 2; ++times) {
      std::string all;
      const auto ranks = lines.each<SeenLines>();
      for (const read::Process* p : job.processes) {
        const SeenLines* rank = ranks.of(p);
        if (rank != nullptr) all += rank->order + std::to_string(rank->events.back().ts_ns) + "\n";
        CHECK((rank == nullptr) == (p == job.processes.back()));
      }
      REQUIRE(lines.unreadable().size() == 1);
      CHECK(lines.unreadable()[0].reason.ends_with("; its lines are left out"));
      said.push_back(all);
    }
  }
  for (const std::string& one : said) CHECK(one == said[0]);
  CHECK(said[0].size() > 800);
}
