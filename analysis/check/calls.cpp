#include "check/calls.h"

#include <algorithm>

#include "tables/sites.h"

namespace tprof::check {

using read::Event;
using read::Process;

Fact fact_of(const Event& e) {
  if (e.launch || e.dtype.empty()) return {Say::launch, {{"function", e.name}}};
  return {Say::call,
          {{"function", e.name},
           {"count", e.count},
           {"dtype", e.dtype},
           {"bytes", e.dtype == "byte" && e.count != 1},
           {"reduce", e.reduce},
           {"collective", e.collective()},
           {"peer", e.peer}}};
}

Fact fact_of(const Event& e, const Process& p) {
  Fact fact = fact_of(e);
  set(fact, {"captured", e.captured});
  set(fact, {"at", Time{called_ns(e, p)}});
  return fact;
}

std::uint64_t fingerprint(const Event& e) {
  std::uint64_t hash = 0;
  const auto add = [&](auto value) {
    hash = (hash ^ std::hash<decltype(value)>()(value)) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  };
  add(std::string_view(e.name));
  add(e.count);
  add(std::string_view(e.dtype));
  add(std::string_view(e.reduce));
  add(e.peer);
  return hash;
}

std::int64_t called_ns(const Event& e, const Process& p) {
  return p.header.base_time_ns + e.ts_ns;
}

namespace {

struct Collectives {
  const Member* of;
  std::uint64_t from;
  std::uint64_t to;
  std::function<void(const Event&)> see;

  void call(const Event& e) const {
    const bool mine = e.collective() && e.comm == of->comm->comm && !e.failed;
    if (mine && e.seq >= from && e.seq < to) see(e);
  }
};

}  // namespace

std::optional<std::string> made_at(const Event& e, const Process& p, const Case& c) {
  if (e.site == 0) return std::nullopt;
  const auto sites = c.shown(p, tables::SiteLines(p));
  const tables::SiteKey* site = sites.find(e.site);
  const read::SiteFrame* frame = site == nullptr ? nullptr : tables::program_frame(*site);
  return frame == nullptr ? std::nullopt : std::optional(tables::text_of(*frame));
}

void each_collective(const Member& m, std::uint64_t from, std::uint64_t to, const Case& c,
                     const std::function<void(const Event&)>& see) {
  c.shown(*m.process, Collectives{&m, from, to, see});
}

std::optional<KnownCall> find_call(const Members& callers, std::uint64_t seq, const Case& c,
                                   int& looks) {
  const Member* returned = nullptr;  // the first that has a line for it
  for (const Member* m : callers) {
    const auto& calls = c.calls(*m->process);
    const auto open = std::ranges::find_if(calls.open, [&](const Event& e) {
      return e.collective() && e.comm == m->comm->comm && e.seq == seq;
    });
    if (open != calls.open.end()) return KnownCall{m, *open};
    const RankCalls::OnComm& on = calls.on(m->comm->comm);
    if (on.last && on.last->seq == seq) return KnownCall{m, *on.last};
    if (returned == nullptr && on.may_have(seq)) returned = m;
  }
  std::optional<KnownCall> call;
  if (returned == nullptr || looks == 0) return call;
  --looks;
  each_collective(*returned, seq, seq + 1, c, [&](const Event& e) {
    if (!call) call = KnownCall{returned, e};
  });
  return call;
}

}  // namespace tprof::check
