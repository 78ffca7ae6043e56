#include "diagnose/line_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <set>
#include <thread>

#include "read/error.h"
#include "read/metadata.h"

namespace tprof::diagnose {
namespace {

constexpr std::size_t kMaxOpen = 4096;  // of a group; a damaged file may hold any number
constexpr std::size_t kMaxDecreased = 8;

// What it did last, by a line of the call or by one that says that it was the last.
void take_last(const read::Process& p, const read::Event& e, LineFacts& facts) {
  if (!facts.last || facts.last->ts_ns <= e.ts_ns) facts.last = e;
  if (e.launch || e.failed || !e.comm || p.end == read::End::closed) return;
  if (e.collective()) {
    const auto [at, fresh] = facts.last_collective.try_emplace(*e.comm, e);
    if (!fresh && at->second.seq <= e.seq) at->second = e;
  } else {
    std::uint64_t& n = facts.talked[{*e.comm, e.peer.value_or(-1), e.name == "ncclSend"}];
    n = std::max(n, e.seq + 1);
  }
}

void take(const read::Process& p, const read::Event& e, LineFacts& facts) {
  if (e.unfinished) {
    CallSums& sums =
        facts
            .calls[{e.bucket, e.name, e.dtype, e.comm, e.captured ? Mode::captured : Mode::direct}];
    ++sums.unfinished;
    if (facts.open.size() < kMaxOpen) facts.open.push_back(e);
    return;
  }
  take_last(p, e, facts);
  if (e.collective() && e.seq == 0) facts.begun.try_emplace(*e.comm, e.ts_ns);
  if (e.failed) {
    if (e.comm) ++facts.failed[*e.comm];
    return;
  }
  CallSums& sums =
      facts.calls[{e.bucket, e.name, e.dtype, e.comm, e.captured ? Mode::captured : Mode::direct}];
  ++sums.calls;
  sums.bytes += e.bytes;
  if (!e.numbered) return;
  if (e.collective()) {
    facts.collectives[*e.comm].add(e.seq);
  } else if (e.name == "ncclSend" || e.name == "ncclRecv") {  // one-sided calls have no other end
    Channel& channel = facts.channels[{*e.comm, e.peer.value_or(-1), e.name == "ncclSend"}];
    channel.seqs.add(e.seq);
    channel.bytes += e.bytes;
  }
}

using RowKey =
    std::tuple<std::string, std::string, std::optional<std::int64_t>, std::int64_t, Mode>;

// A ledger is cumulative: what it once said stays.
void compare(const read::Ledger& before, const read::Ledger& now, std::uint64_t offset,
             std::vector<std::string>& decreased) {
  const auto report = [&](const std::string& what, std::uint64_t from, std::uint64_t to) {
    if (from <= to || decreased.size() == kMaxDecreased) return;
    decreased.push_back(
        fmt::format("the ledger at byte {} says {} {}, one before it {}", offset, to, what, from));
  };
  std::map<std::int64_t, std::uint64_t> collectives;
  for (const read::Collectives& c : now.collectives) collectives[c.comm] = c.count;
  for (const read::Collectives& c : before.collectives) {
    report(fmt::format("collectives of communicator {}", c.comm), c.count, collectives[c.comm]);
  }
  std::map<RowKey, std::uint64_t> calls;
  const auto key = [](const read::Row& r) {
    return RowKey(r.name, r.dtype, r.comm, r.bytes_class, r.mode);
  };
  for (const read::Row& r : now.rows) calls[key(r)] += r.amounts.calls;
  for (const read::Row& r : before.rows) {
    report("calls of " + r.name, r.amounts.calls, calls[key(r)]);
  }
}

// Of the processes of one file.
Facts facts_of(const read::Trace& trace, const std::set<const read::Process*>& ours) {
  Facts all;
  for (const read::Process& p : trace.processes) {
    if (ours.contains(&p)) all[&p];
  }
  read::MetadataParser metadata(trace.source.file);
  std::map<std::int64_t, read::Ledger> before;  // by epoch, of the process that is being read
  std::size_t place = 0;                        // of that process in the file, from 1
  // Of all ranks of the process that a line is in.
  const auto facts_at = [&](std::uint64_t offset) {
    std::vector<LineFacts*> facts;
    const read::Process* last = read::owner_at(trace, offset);
    if (last == nullptr) return facts;
    for (const read::Process* p = last - last->lane; p <= last; ++p) {
      if (const auto found = all.find(p); found != all.end()) facts.push_back(&found->second);
    }
    return facts;
  };
  read::read_lines(
      trace,
      {.wanted = [&](const read::Process& p) { return all.contains(&p); },
       .event = [&](const read::Process& p, const read::Event& e) { take(p, e, all.at(&p)); },
       .launch = [&](const read::Process& p, const read::Event& e) { take_last(p, e, all.at(&p)); },
       .last =
           [&](const read::Process& p, const read::Event& e) {
             take_last(p, e, all.at(&p));
             all.at(&p).from_ring = true;
           },
       .open_range =
           [&](const read::Process& p, const read::Range& r) {
             auto& ranges = all.at(&p).ranges;
             if (ranges.size() < kMaxOpen) ranges.push_back(r);
           },
       .metadata =
           [&](const read::Line& line) {
             metadata.line(line);
             if (metadata.processes().size() != place) {
               place = metadata.processes().size();
               before.clear();
             }
             if (place == 0) return;
             read::Process& now = metadata.processes().back();
             const auto lanes = facts_at(line.offset);
             for (LineFacts* facts : lanes) facts->clock = now.header.clock;
             if (!line.text.starts_with("{\"name\":\"tprof_ledger\"")) return;
             for (const auto& [epoch, ledger] : now.ledgers) {
               const auto old = before.find(epoch);
               if (old == before.end()) continue;
               for (LineFacts* facts : lanes) {
                 compare(old->second, ledger, line.offset, facts->decreased);
               }
             }
             before = now.ledgers;
           }});
  return all;
}

}  // namespace

bool wants_lines(const read::Process& p, Bucket bucket) {
  if (kBuckets[static_cast<std::size_t>(bucket)].lines) return true;
  const auto events = p.header.config.find("TPROF_EVENTS");
  return events != p.header.config.end() && events->second == "all";
}

bool knows_last(const read::Process& p, const LineFacts& facts) {
  if (!facts.last || !p.footer || p.end == read::End::partial) return false;
  if (facts.from_ring) return true;
  const bool no_line = std::ranges::any_of(p.ledgers, [&](const auto& epoch) {
    return std::ranges::any_of(epoch.second.rows, [&](const read::Row& row) {
      return row.amounts.calls != 0 && !wants_lines(p, row.bucket);
    });
  });
  return p.footer->dropped.empty() && !no_line;
}

Facts line_facts(const match::Job& job, const read::Traces& traces,
                 const std::function<void(std::size_t)>& progress,
                 std::vector<read::Skipped>& unreadable) {
  const std::set<const read::Process*> ours(job.processes.begin(), job.processes.end());
  std::vector<const read::Trace*> wanted;
  for (const read::Trace& trace : traces.traces) {
    if (std::ranges::any_of(trace.processes,
                            [&](const read::Process& p) { return ours.contains(&p); })) {
      wanted.push_back(&trace);
    }
  }
  std::vector<Facts> parts(wanted.size());
  std::vector<std::string> unread(wanted.size());
  std::vector<std::exception_ptr> errors(wanted.size());
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> done{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < wanted.size(); i = next++) {
      try {
        parts[i] = facts_of(*wanted[i], ours);
      } catch (const read::BadInput& e) {
        unread[i] = e.what();
      } catch (...) {
        errors[i] = std::current_exception();
      }
      progress(++done);
    }
  };
  {
    const std::size_t threads = std::clamp(std::thread::hardware_concurrency(), 1U, 16U);
    std::vector<std::jthread> pool;
    for (std::size_t i = 1; i < std::min(threads, wanted.size()); ++i) pool.emplace_back(work);
    work();
  }
  Facts all;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (errors[i]) std::rethrow_exception(errors[i]);
    if (!unread[i].empty()) unreadable.push_back({unread[i] + "; its lines are left out", true});
    all.merge(parts[i]);
  }
  return all;
}

}  // namespace tprof::diagnose
