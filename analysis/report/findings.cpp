#include "report/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "check/names.h"
#include "filter/selection.h"
#include "report/report.h"
#include "report/words.h"
#include "text/text.h"

namespace tprof::report {

using text::printable;

std::string next_of(const check::Finding& f) {
  return f.next ? sentence(*f.next) : advice(f.text);
}

std::string to_text(const check::Finding& f, Detail detail) {
  std::string out = fmt::format("{}: {}\n", f.severity_name(), printable(sentence(f.text)));
  if (detail == Detail::full) {
    for (const auto& e : f.evidence) out += fmt::format("  {}\n", printable(sentence(e)));
  }
  const std::string next = next_of(f);
  if (!next.empty()) out += fmt::format("  -> {}\n", printable(next));
  return out;
}

Json to_json(const check::Findings& findings, Detail detail) {
  const bool full = detail == Detail::full;
  Json all = Json::array();
  for (const check::Finding& f : findings) {
    Json j = {
        {"kind", name_of(f.kind)}, {"severity", f.severity_name()}, {"ranks", f.ranks.list()}};
    if (full) {
      j["communicator"] = or_null(f.communicator);
      j["seq"] = or_null(f.seq);
      j["between"] = f.between ? Json{f.between->first, f.between->second} : Json();
      j["function"] = or_null(f.function);
      j["time"] = f.time ? Json{f.time->from_ns, f.time->to_ns} : Json();
      j["steps"] = f.steps ? Json{f.steps->first, f.steps->last} : Json();
      j["in_steps"] = or_null(f.in_steps.str());
    }
    j["text"] = sentence(f.text);
    if (full) {
      Json& evidence = j["evidence"] = Json::array();
      for (const auto& e : f.evidence) evidence.push_back(sentence(e));
    }
    j["next"] = or_null(next_of(f));
    if (full && f.cost) {
      j["cost"] = {{"ns", f.cost->ns},
                   {"doubt_ns", f.cost->doubt_ns},
                   {"share", f.cost->share},
                   {"ns_per_step", or_null(f.cost->ns_per_step)}};
    }
    all.push_back(std::move(j));
  }
  return all;
}

Json only_json(const filter::Words& only, const std::vector<std::string>& notes) {
  Json j = Json::object();
  for (const auto& [name, value] : only.given()) j[name] = value;
  if (!only.merged.empty()) j["merged"] = only.merged;
  j["notes"] = notes;
  return j;
}

std::string only_text(const filter::Words& only, const std::vector<std::string>& notes,
                      const std::string& before) {
  const std::string sentence = only.sentence();
  if (sentence.empty()) return "";
  std::string out = before + text::printable(sentence) + "\n";
  for (const std::string& note : notes) out += before + text::printable(note) + "\n";
  return out;
}

namespace {

using text::printable;
using text::thousands;

using check::CommunicatorVerdict;
using check::Verdict;

constexpr std::size_t kMaxLines = 16;  // of communicators whose ranks did different things

std::string_view text_of(Verdict verdict) {
  constexpr std::string_view kTexts[] = {
      "all ranks did the same", "the ranks that were seen did the same", "not all ranks got as far",
      "the ranks did NOT do the same"};
  return kTexts[static_cast<int>(verdict)];
}

// Says what was called and whether ranks agree. If there are only sends and receives, these are
// compared.
std::string compared(const std::vector<const CommunicatorVerdict*>& all) {
  CommunicatorVerdict sum;
  for (const CommunicatorVerdict* c : all) sum.add(*c);
  if (sum.most != 0 || (sum.sends == 0 && sum.receives == 0) || sum.verdict == Verdict::different) {
    // With several communicators, not every rank is in each.
    const bool each = all.size() > 1 && sum.verdict == Verdict::same;
    return fmt::format(
        "{}, {}",
        sum.most == 0 ? "no collectives" : check::counted_to(sum.fewest, sum.most, "collective"),
        each ? "on each of them all ranks did the same" : text_of(sum.verdict));
  }
  return fmt::format("no collectives, {} and {}{}", check::counted(sum.sends, "send"),
                     check::counted(sum.receives, "receive"),
                     sum.pairs_differ            ? ", which do NOT match"
                     : sum.sends != sum.receives ? ", some of which have no counterpart"
                                                 : ", equally many");
}

std::string id_of(const CommunicatorVerdict& c) {
  return printable(c.id) + (c.name.empty() ? "" : fmt::format(" \"{}\"", printable(c.name)));
}

std::string line(const CommunicatorVerdict& c) {
  const std::size_t seen = c.members.size();
  return fmt::format(
      "communicator {} ({}{}): {}\n", id_of(c),
      check::counted(static_cast<std::uint64_t>(c.nranks), "rank"),
      seen == static_cast<std::size_t>(c.nranks) ? "" : fmt::format(", {} seen", seen),
      compared({&c}));
}

// Returns one line for all communicators with the same verdict, the largest first. Communicators
// whose ranks did different things get a line each.
std::string lines(const std::vector<const CommunicatorVerdict*>& alike) {
  const CommunicatorVerdict& largest = *alike.front();
  const std::size_t n = alike.size();
  if (n > 1 && largest.cleared()) {
    const std::int64_t least = alike.back()->nranks;
    return fmt::format("{} communicators ({}{}; the largest is {}): {}\n", thousands(n),
                       least == largest.nranks ? "" : fmt::format("{} to ", least),
                       check::counted(static_cast<std::uint64_t>(largest.nranks), "rank"),
                       id_of(largest), compared(alike));
  }
  std::string out;
  for (std::size_t i = 0; i < std::min(n, kMaxLines); ++i) out += line(*alike[i]);
  if (n > kMaxLines) {
    out += fmt::format("and {} more communicators: {}\n", thousands(n - kMaxLines),
                       text_of(largest.verdict));
  }
  return out;
}

std::string communicators(const std::vector<CommunicatorVerdict>& all) {
  std::vector<std::vector<const CommunicatorVerdict*>> verdicts;
  for (const CommunicatorVerdict& c : all) {
    const auto same = std::ranges::find_if(
        verdicts, [&](const auto& alike) { return alike[0]->verdict == c.verdict; });
    (same != verdicts.end() ? *same : verdicts.emplace_back()).push_back(&c);
  }
  std::string out;
  for (const auto& alike : verdicts) out += lines(alike);
  return out;
}

// Says what the filters leave out.
std::vector<std::string> notes_of(const filter::Words& only, const job::Job& job) {
  std::vector<std::string> notes;
  if (auto few = filter::absent_of(only.ranks, job)) notes.push_back(std::move(*few));
  if (!only.ranks.empty()) notes.emplace_back("other ranks are ignored");
  if (!only.comms.empty()) {
    notes.emplace_back(
        "other communicators and late ranks are not reported; how ranks ended is not filtered");
  }
  return notes;
}

}  // namespace

std::string to_text(const check::Diagnosed& said, const filter::Words& only) {
  std::string out =
      only_text(only, notes_of(only, *said.job), "") + communicators(said.communicators);
  const auto& processes = said.job->processes;
  if (std::ranges::all_of(processes, [](const auto* p) { return p->comms.empty(); })) {
    const bool copies = std::ranges::any_of(processes, [](const read::Process* p) {
      return std::ranges::any_of(read::rows_of(*p),
                                 [](const read::Row& row) { return row.amounts.calls != 0; });
    });
    const bool tried = std::ranges::any_of(said.findings, [](const check::Finding& f) {
      return f.kind == check::Kind::hang || f.kind == check::Kind::stopped ||
             f.kind == check::Kind::refused;
    });
    out += fmt::format("no communicator{}: {} made {}\n", tried ? " was made" : "",
                       check::counted(processes.size(), "process"),
                       copies ? "copies only" : "no counted call");
  }
  bool numbers = false;
  for (const check::Finding& f : said.findings) {
    out += to_text(f, Detail::full);
    numbers = numbers || f.seq || f.between;
  }
  if (numbers) {
    out +=
        "Collectives and messages are counted from 0 on each communicator, as seq in the lines.\n";
  }
  return out;
}

std::string to_json(const check::Diagnosed& said, const filter::Words& only) {
  const job::Job& job = *said.job;
  nlohmann::ordered_json j;
  j["schema"] = "tprof-check/1";
  j["run_id"] = or_null(job.run_id);
  if (!only.sentence().empty()) j["only"] = only_json(only, notes_of(only, *said.job));
  j["ranks"] = job.ranks;
  j["missing_ranks"] = job.missing;
  j["healthy"] = healthy(said.findings);
  auto& comms = j["communicators"] = nlohmann::json::array();
  for (const check::CommunicatorVerdict& c : said.communicators) {
    auto ranks = nlohmann::json::array();
    for (const check::Member& m : c.members) {
      ranks.push_back(m.rank() ? nlohmann::json(*m.rank()) : nlohmann::json());
    }
    comms.push_back({{"id", c.id},
                     {"name", or_null(c.name)},
                     {"nranks", c.nranks},
                     {"ranks", ranks},
                     {"collectives", c.collectives},
                     {"same", c.cleared()}});
  }
  j["findings"] = to_json(said.findings, Detail::full);
  return printed(j);
}

}  // namespace tprof::report
