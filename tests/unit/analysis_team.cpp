// Several processes that share the reading of a job say what one says: here they are threads.
#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "analysis_traces.h"
#include "catch2.h"
#include "check/diagnose.h"
#include "filter/selection.h"
#include "interpose/format/settings.h"
#include "job/choice.h"
#include "page/page.h"
#include "read/folder.h"
#include "report/report.h"
#include "run/lines.h"
#include "summary/summary.h"
#include "team/team.h"

using namespace tprof;
using namespace tprof::test;

namespace {

// Has what the processes of a team say to each other, which are threads here.
struct Hub {
  std::size_t size;
  std::mutex mutex{};
  std::condition_variable changed{};
  std::map<std::pair<std::size_t, std::size_t>, std::deque<std::string>> said{};  // from and to
};

class OfThreads : public team::Team {
 public:
  OfThreads(Hub& hub, std::size_t rank) : hub_(hub), rank_(rank) {}
  std::size_t rank() const override { return rank_; }
  std::size_t size() const override { return hub_.size; }
  void send(std::size_t to, const std::string& message) override {
    const std::scoped_lock lock(hub_.mutex);
    hub_.said[{rank_, to}].push_back(message);
    hub_.changed.notify_all();
  }
  std::string receive(std::size_t from) override {
    std::unique_lock lock(hub_.mutex);
    auto& said = hub_.said[{from, rank_}];
    hub_.changed.wait(lock, [&] { return !said.empty(); });
    std::string first = std::move(said.front());
    said.pop_front();
    return first;
  }

 private:
  Hub& hub_;
  std::size_t rank_;
};

// Returns what the first of n processes says. One alone has no team.
std::string said_by(std::size_t n, const std::function<std::string(const team::Shared&)>& work) {
  if (n == 1) return work(nullptr);
  Hub hub{n};
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < n; ++i) {
    others.emplace_back([&hub, i] {
      OfThreads team(hub, i);
      run::work_for(team);
    });
  }
  const auto team = std::make_shared<OfThreads>(hub, 0);
  std::string said;
  try {
    said = work(team);
  } catch (const std::exception& e) {
    said = e.what();
  }
  team::end(*team, 0);
  return said;
}

std::string line_of_call(std::string_view name, std::string_view bucket, int at, int seq,
                         std::string_view what) {
  return R"({"name":")" + std::string(name) + R"(","cat":")" + std::string(bucket) +
         R"(","ph":"X","pid":0,"tid":7,"ts":)" + std::to_string(at) +
         R"(.000,"dur":2.000,"args":{"comm":1,"seq":)" + std::to_string(seq) + "," +
         std::string(what) + "}},\n";
}

constexpr int kTeam = 9;
constexpr int kCalls = 40;
constexpr int kStepUs = 4000;

// A collective, with its time on the device and what that computed behind it.
std::string call(int rank, int seq) {
  const int at = 1000 + seq * 1000 + (rank == 3 ? 400 : rank);  // rank 3 is late
  const bool gathers = seq % 2 == 0;
  const std::string_view name = gathers ? "ncclAllGather" : "ncclReduceScatter";
  return line_of_call(name, gathers ? "ALLGATHER" : "RESHARDING", at, seq,
                      R"("count":50,"dtype":"float32","bytes":200)") +
         R"({"cat":"DEVICE","name":")" + std::string(name) +
         R"(","ph":"X","pid":0,"tid":8388610,"ts":)" + std::to_string(at + 20) + R"(.500,"dur":)" +
         std::to_string(500 - at % 1000) + R"(.000,"args":{"comm":1,"seq":)" + std::to_string(seq) +
         R"(,"stream":2,"call_tid":7,"queued":20.500}},)"
         "\n"
         R"({"cat":"BUSY","name":"compute","ph":"X","pid":0,"tid":12582912,"ts":)" +
         std::to_string(seq * 1000 + 1530) + R"(.000,"dur":400.000,"args":{"device":0}},)" + "\n";
}

std::string range(std::string_view phase, std::string_view name, int from) {
  const std::string dur = phase == "X" ? R"(,"dur":3900.000)" : "";
  return R"({"cat":"NVTX","ph":")" + std::string(phase) + R"(","name":")" + std::string(name) +
         R"(","pid":0,"tid":4194311,"ts":)" + std::to_string(from) + ".000" + dur + R"(,"args":{)" +
         (phase == "X" ? "" : R"("unfinished":true)") + "}},\n";
}

std::string timed_row(std::string_view bucket, std::string_view name, int calls) {
  std::string text = row(bucket, name, "1", "direct", calls);
  const std::string untimed = R"("device_ns":0,"device_timed":0)";
  return text.replace(text.find(untimed), untimed.size(),
                      R"("device_ns":900,"device_timed":)" + std::to_string(calls));
}

// Gives some ranks what others do not have, so that every diagnosis has something to find.
std::string oddities(int rank) {
  if (rank == 1) {  // its wall clock was set
    return R"({"name":"tprof_clock","ph":"M","pid":0,"tid":0,"args":{"clock":[5000000,)"
           "1763683209005000000,48]}},\n";
  }
  if (rank == 2) return ledger(timed_row("ALLGATHER", "ncclAllGather", 999));  // it had more before
  if (rank != 8) return "";
  std::string open = call(rank, kCalls);
  open = open.substr(0, open.find('\n') + 1);
  const auto dur = open.find(R"("dur":2.000,)");
  open.erase(dur, 12).replace(open.find(R"("ph":"X")"), 8, R"("ph":"B")");
  return range("B", "never popped", 40'900) + open;
}

// A job whose rank 3 is late and whose rank 5 made fewer calls. `odd`: more is wrong with it.
void write_job(const Folder& folder, bool odd, int ranks = kTeam) {
  for (int rank = 0; rank < ranks; ++rank) {
    const int calls = rank == 5 ? kCalls - 3 : kCalls;
    std::string text = "[\n" + header({.pid = 100 + rank,
                                       .rank = std::to_string(rank),
                                       .world_size = std::to_string(ranks)});
    std::string its = comm(1, "aa", std::to_string(ranks));
    text += its.replace(its.find(R"("rank":0)"), 8, R"("rank":)" + std::to_string(rank));
    for (int seq = 0; seq < calls; ++seq) {
      if (odd && rank == 6 && seq == 7) continue;
      text += call(rank, seq);
      const int step = seq / 4;
      if (seq % 4 == 3) {
        text += range("X", "step " + std::to_string(step), step * kStepUs + 500);
      }
    }
    if (odd) {
      text += oddities(rank);
    } else {  // an object is gathered
      text += line_of_call("ncclAllGather", "ALLGATHER", 41'000, calls,
                           R"("count":1,"dtype":"int64","bytes":72)");
      text += line_of_call("ncclAllGather", "ALLGATHER", 41'100, calls + 1,
                           R"("count":90,"dtype":"uint8","bytes":810)");
    }
    std::string last = ledger(timed_row("ALLGATHER", "ncclAllGather", (calls + 1) / 2) + "," +
                              timed_row("RESHARDING", "ncclReduceScatter", calls / 2));
    if (rank == 2) {
      last.insert(last.rfind("}},"), R"(,"scopes":[{"scope":"load","count":5,"total_ns":100,)"
                                     R"("max_ns":40,"bins":[[16,5]]}])");
    }
    text += odd && rank == 8 ? last : last + footer();
    folder.write(fmt::format("rank-{:05}.json", rank), text);
  }
}

// Its lines can't be read, though its head and its end can.
void damage(const Folder& folder, int rank) {
  const auto file = folder.path() / fmt::format("rank-{:05}.json", rank);
  std::ifstream in(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  text.insert(text.find(R"({"name":"ncclReduceScatter")", text.size() / 2),
              "{\"name\":\"ncclAllGather\",\"cat\":\"ALLGATHER\",\"ph\":\"X\",\"ts\":oh,\n");
  folder.write(file.filename().string(), text);
}

read::Traces loaded(const Folder& folder, const team::Shared& team) {
  return read::load_all(
      read::trace_files({folder.path()}), [](std::size_t) {}, read::Wanted::lines, team);
}

// Tables that can't honour the filter are left out, as the tool refuses them; so are those that
// take every line, unless all lines can be read.
std::string summarised(const read::Traces& traces, tables::SummaryOptions options,
                       const filter::Words& only = {}, bool all_lines = true) {
  const job::Job whole = job::one_job(traces, {});
  const filter::Selection asked(run::Lines(whole, traces), filter::parsed(only), {.steps = true});
  options.asked = &asked;
  options.read_lines = options.op_times = options.steps = true;
  options.top = 7;
  const tables::Summary s = tables::summarise(asked.lines(), options);
  std::string all;
  for (const report::ByRow& by : report::by_rows()) {
    if (!only.empty() && by.follows != report::Follows::calls) continue;
    if (!all_lines && by.takes == report::Takes::lines) continue;
    all += report::to_json(s, by.by, true) + report::to_text(s, {.by = by.by, .per_rank = true});
  }
  return all;
}

std::string reported(const read::Traces& traces) {
  const job::Job job = job::one_job(traces, {});
  page::Gathered g;
  page::gather(run::Lines(job, traces), g);
  return page::to_json(g) + page::to_text(g, "");
}

// All that is said of a job, by n processes.
std::string all_said(std::size_t n, const Folder& folder, bool whole) {
  return said_by(n, [&](const team::Shared& team) {
    const read::Traces traces = loaded(folder, team);
    tables::SummaryOptions options;
    if (whole) options.histogram = tables::HistogramOptions{.name = "ncclAllGather"};
    std::string all = summarised(traces, options, {}, whole);
    all += summarised(traces, {}, {.steps = "2-5"}, whole);
    all +=
        summarised(traces, {}, {.ops = "ALLGATHER", .sizes = "100-", .phases = "backward"}, whole);
    const job::Job job = job::one_job(traces, {});
    const check::Diagnosed said = check::diagnose(job, traces, {});
    return all + report::to_text(said) + report::to_json(said) + reported(traces);
  });
}

}  // namespace

TEST_CASE("the library takes the variable of the tool for no misspelt one of its own") {
  CHECK(!is_unknown_setting("TPROF_MPI"));
  CHECK(is_unknown_setting("TPROF_MPI_"));
}

TEST_CASE("several processes say what one says") {
  const Folder folder;
  write_job(folder, false);
  const std::string alone = all_said(1, folder, true);
  for (const char* part : {"late", "\"load\"", "of objects"}) CHECK_THAT(alone, has_text(part));
  for (const std::size_t n : {2U, 4U, 7U}) {
    CHECK(all_said(n, folder, true) == alone);
  }
}

TEST_CASE("several processes say what one says of a job with which much is wrong") {
  const Folder folder;
  write_job(folder, true);
  damage(folder, 4);
  folder.write("rank-00007.json", "{\"an\":\"other file\"}\n");
  const std::string alone = all_said(1, folder, false);
  for (const char* part :
       {"rank-00004.json: byte", "rank-00007.json", "clock_step", "ledger_decreased", "seq_gap"}) {
    CHECK_THAT(alone, has_text(part));
  }
  for (const std::size_t n : {2U, 4U, 7U}) {
    CHECK(all_said(n, folder, false) == alone);
  }
}

TEST_CASE("an error that one file is worth is that of all processes") {
  const Folder folder;
  write_job(folder, false);
  damage(folder, 4);
  CHECK_THAT(
      said_by(4, [&](const team::Shared& team) { return summarised(loaded(folder, team), {}); }),
      has_text("rank-00004.json: byte"));
}

TEST_CASE("what another process throws is thrown by its answer") {
  CHECK(said_by(3, [&](const team::Shared& team) {
          team::ask(*team, 2, team::Ask::files, "damaged");
          return team::answer(*team, 2);
        }) == "process 2 of 3: a message of another process of the team is cut or damaged");
}
