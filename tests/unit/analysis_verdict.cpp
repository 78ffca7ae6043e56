// The sentence that the report leads with, and the bins of its histograms.
#include "catch2.h"
#include "report/verdict.h"
#include "tables/durations.h"

using namespace tprof;
using check::Kind;
using check::Severity;

namespace {

check::Finding finding(Kind kind, Severity severity, double share = 0) {
  check::Finding f{.kind = kind, .severity = severity};
  f.text = {check::Say::arrivals_are, {{"on_device", true}}};
  if (share != 0) f.cost = check::Cost{.ns = 1, .share = share, .ns_per_step = 3'000'000};
  return f;
}

struct LateRanks {
  explicit LateRanks(std::vector<std::int64_t> late_ns) : processes(late_ns.size()) {
    for (std::size_t i = 0; i < late_ns.size(); ++i) {
      processes[i].header.rank = static_cast<std::int64_t>(i);
      lateness.ranks.push_back(
          {.rank = &processes[i], .last = 3, .sum_ns = late_ns[i], .waited_ns = late_ns[i]});
      job.ranks.push_back(static_cast<std::int64_t>(i));
    }
    lateness.span_ns = 1000;
    said.job = &job;
  }
  report::JobVerdict verdict(const check::Findings& findings, report::Known known = {}) {
    said.findings = findings;
    known.late = &lateness;
    return report::verdict_of(said, known);
  }

  std::vector<read::Process> processes;
  check::Lateness lateness;
  job::Job job;
  check::Diagnosed said;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("an error leads, then what costs most, then a rank that was late, then a warning") {
  LateRanks on_time({0, 0, 0, 0});
  const auto warning = finding(Kind::failed, Severity::warning);
  const auto cheap = finding(Kind::late, Severity::note, 0.03);
  const auto costly = finding(Kind::late, Severity::note, 0.2);
  const auto error = finding(Kind::hang, Severity::error);
  CHECK(on_time.verdict({warning, cheap, costly, error}).finding == 3U);
  const report::JobVerdict most = on_time.verdict({warning, cheap, costly});
  CHECK(most.finding == 2U);
  CHECK(most.severity == "note");
  const auto stopped = finding(Kind::stopped, Severity::warning);
  CHECK(on_time.verdict({warning, costly, stopped}).finding == 2U);
  // Where all ended together, somebody ended them.
  auto all_stopped = stopped;
  all_stopped.ranks = text::Ranks({0, 1, 2, 3});
  CHECK(on_time.verdict({warning, costly, all_stopped}).finding == 1U);
  CHECK(on_time.verdict({warning}).finding == 0U);
  CHECK(on_time.verdict({finding(Kind::late, Severity::note, 0.001)}).severity == "ok");

  LateRanks late({400, 90, 80, 0});
  const report::JobVerdict waited = late.verdict({warning});
  CHECK(!waited.finding);
  CHECK(has(waited.text, "Rank 0 came last to"));
  // With times of devices it is known what a finding costs; with hosts' alone the longer one is
  // told.
  CHECK(late.verdict({warning, costly}, {.timed = true}).finding == 1U);
  CHECK(has(late.verdict({warning, costly}).text, "Rank 0 came last to"));
  CHECK(late.verdict({warning, finding(Kind::late, Severity::note, 0.5)}).finding == 1U);
  auto of_rank = finding(Kind::late, Severity::note);
  of_rank.ranks = text::Ranks({0});
  CHECK(late.verdict({warning, of_rank}).finding == 1U);
  // All come late alike: nobody is to blame.
  CHECK(LateRanks({400, 390, 380, 370}).verdict({warning}).finding == 0U);
  CHECK(LateRanks({40, 0, 0, 0}).verdict({warning}).finding == 0U);
}

TEST_CASE("why nobody went on leads, before what files lack and what only costs time") {
  LateRanks ranks({0, 0});
  const auto missing = finding(Kind::missing_rank, Severity::error);
  const auto sizes = finding(Kind::p2p_sizes, Severity::warning);  // of a job that closed
  const auto costly = finding(Kind::late, Severity::note, 0.2);
  for (const auto& why :
       {finding(Kind::hang, Severity::error), finding(Kind::mismatch, Severity::error),
        finding(Kind::group_order, Severity::error), finding(Kind::group_order, Severity::warning),
        finding(Kind::p2p_sizes, Severity::error)}) {
    CHECK(ranks.verdict({missing, sizes, costly, why}).finding == 3U);
  }
  CHECK(ranks.verdict({sizes, costly, missing}).finding == 2U);
  CHECK(ranks.verdict({sizes, costly}).finding == 1U);
}

TEST_CASE("a rank whose host may only have waited for its device is not to blame") {
  LateRanks late({400, 90, 80, 0});
  check::LateRank& first = late.lateness.ranks[0];
  first.sum_read_ns = first.waited_read_ns = 250;
  const std::string text = late.verdict({}).text;
  CHECK(text.starts_with("4 ranks, no collectives, 0 copies"));
  CHECK(has(text, "Rank 0 came last to 3 of 0 collectives, mostly behind values that it reads"));
  CHECK(late.verdict({}).severity == "ok");
  const auto warning = finding(Kind::failed, Severity::warning);
  CHECK(late.verdict({warning}).finding == 0U);
  // The rest is most of it, and far more than the others have; of these one may have as much.
  first.sum_read_ns = first.waited_read_ns = 10;
  CHECK(late.verdict({warning}).text.starts_with("Rank 0 came last to 3 of 0 collectives, by 390"));
  late.lateness.ranks[1].sum_ns = late.lateness.ranks[1].waited_ns = 350;
  first.sum_read_ns = first.waited_read_ns = 390;
  CHECK(late.verdict({}).text.starts_with("Rank 1 came last to"));
}

TEST_CASE("a job that stood still until it was killed was not slow, where that took longer") {
  LateRanks ranks({0, 0, 0});
  for (read::Process& p : ranks.processes) {
    p.end = read::End::recovered;
    p.ledger.emplace().ts_ns = 50'000;
    ranks.job.processes.push_back(&p);
  }
  ranks.said.communicators.emplace_back().collectives = 5;
  auto ended = finding(Kind::not_closed, Severity::note);
  const auto costly = finding(Kind::late, Severity::note, 0.2);
  CHECK(ranks.verdict({ended, costly}).finding == 1U);
  set(ended.text, {"quiet", check::Ns{5'000}});
  CHECK(ranks.verdict({ended, costly}).finding == 1U);
  set(ended.text, {"quiet", check::Ns{40'000}});
  const report::JobVerdict verdict = ranks.verdict({ended, costly});
  CHECK(verdict.finding == 0U);
  CHECK(verdict.severity == "note");
  CHECK(has(verdict.text,
            "until then they did the same 5 collectives, and made no call in the "
            "last 40.00 us"));
}

TEST_CASE("bins of durations hold what is between their edges") {
  using tables::Spectrum;
  CHECK(Spectrum::bin_of(0) == 0);
  CHECK(Spectrum::edge_ns(0) == 64);
  CHECK(Spectrum::edge_ns(5) == 160);  // 128 and a quarter of it
  CHECK(Spectrum::bin_of(UINT64_MAX) == Spectrum::kBins - 1);
  for (std::size_t bin = 0; bin + 1 < Spectrum::kBins; ++bin) {
    CHECK(Spectrum::bin_of(Spectrum::edge_ns(bin)) == bin);
    CHECK(Spectrum::bin_of(Spectrum::edge_ns(bin + 1) - 1) == bin);
  }
}

TEST_CASE("a path at the beginning of the verdict keeps its letters") {
  LateRanks ranks({0, 0});
  auto damaged = finding(Kind::unreadable, Severity::error);
  damaged.text = {check::Say::unreadable, {{"reason", "s/corr/rank-00001.json: byte 3: not JSON"}}};
  CHECK(ranks.verdict({damaged}).text == "s/corr/rank-00001.json: byte 3: not JSON.");
}

TEST_CASE("steps that are mostly exposed communication are not called well") {
  LateRanks ranks({0, 0});
  ranks.said.communicators.emplace_back().collectives = 1234;
  CHECK(ranks.verdict({}, {.exposed_share = 0.75}).text ==
        "Nothing is wrong: 2 ranks did the same 1,234 collectives.");
  CHECK(has(ranks.verdict({}, {.step_ns = 5'000'000, .exposed_share = 0.75}).text,
            "Nothing is wrong with what the ranks did: "));
}

TEST_CASE("a job known to stand is named before what slows it") {
  LateRanks ranks({0, 0, 0});
  auto stands = finding(Kind::running, Severity::note);
  stands.text.values = {{"quiet", check::Ns{1}}};
  const auto costly = finding(Kind::late, Severity::note, 0.2);
  CHECK(ranks.verdict({stands}).finding == 0U);
  CHECK(ranks.verdict({stands, costly}).finding == 1U);
  auto all_came = stands;
  set(all_came.text, {"last", std::string("ncclAllReduce")});
  CHECK(ranks.verdict({costly, all_came}).finding == 1U);
  set(stands.text, {"behind", std::string("rank 1")});
  CHECK(ranks.verdict({costly, stands}).finding == 1U);
}
