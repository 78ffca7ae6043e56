#include "check/started.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "check/diagnosis.h"

namespace tprof::check {
namespace {

using read::Process;
using About = Started::About;

// These name a part of the machine or of one process, so even two values may differ.
constexpr std::string_view kOnesOwn[] = {"CUDA_VISIBLE_DEVICES", "NCCL_SOCKET_IFNAME"};

// Two different values may be a mistake; three distinct ones are meant to differ.
constexpr std::size_t kNoAccident = 3;

// True if each group of processes has one value that no other group has.
template <typename Key>
bool one_each(const std::map<std::string, Processes>& values, const Key& key) {
  std::set<decltype(key(std::declval<const Process&>()))> seen;
  for (const auto& [value, processes] : values) {
    const auto first = key(*processes.front());
    const auto other = [&](const Process* p) { return key(*p) != first; };
    if (std::ranges::any_of(processes, other) || !seen.insert(first).second) return false;
  }
  return values.size() >= kNoAccident;
}

constexpr std::size_t kShown = 4;

// Reports variables and versions that differ between ranks. A process without a rank may be another
// program.
void differences(const Case& c, Findings& found) {
  const Processes ranks =
      select(c.job.processes, [](const Process& p) { return p.header.rank && !read::is_child(p); });
  for (const Started& s : started_with(ranks)) {
    const bool is_version = s.about == About::version;
    const bool is_variable = s.about == About::env && !s.is_ones_own();
    if (!s.differs() || !(is_version || is_variable)) continue;
    Facts list;
    for (const auto& [value, processes] : s.values) {
      const auto told = value.empty() ? std::nullopt : std::optional(value);
      list.push_back({Say::value_on, {{"value", told}, {"who", processes}}});
    }
    shorten(list, kShown);
    add(found, is_version ? Kind::versions_differ : Kind::settings_differ, {},
        {{"what", s.name}, {"values", list}});
  }
}

}  // namespace

bool Started::is_ones_own() const {
  return std::ranges::find(kOnesOwn, name) != std::end(kOnesOwn) ||
         one_each(values, [](const Process& p) { return p.header.rank; }) ||
         one_each(values, [](const Process& p) { return p.header.local_rank; }) ||
         one_each(values, [](const Process& p) { return p.header.host.str(); });
}

std::string Started::whose() const {
  if (!differs()) return values.begin()->first;
  std::string all;
  std::size_t shown = 0;
  for (const auto& [value, processes] : values) {
    if (value.empty()) continue;
    if (shown++ == kShown) return fmt::format("{}, and other values", all);
    all += fmt::format("{}{} ({})", all.empty() ? "" : ", ", value, names_of(processes));
  }
  return all;
}

std::vector<Started> started_with(const Processes& processes) {
  std::map<std::pair<About, std::string>, std::map<std::string, Processes>> all;
  const auto add = [&](About about, const char* name, const std::string& value, const Process* p) {
    if (!value.empty()) all[{about, name}][value].push_back(p);
  };
  const auto number = [](const auto& n) { return n ? std::to_string(*n) : std::string(); };
  for (const Process* p : processes) {
    const read::Header& h = p->header;
    for (const auto& [name, value] : *h.config) add(About::config, name.c_str(), value, p);
    for (const auto& [name, value] : *h.env) add(About::env, name.c_str(), value, p);
    add(About::version, "tprof", h.version, p);
    add(About::version, "NCCL", number(h.nccl_version), p);
    add(About::version, "CUDA runtime", number(h.cudart_version), p);
    add(About::file, "NCCL's file", h.nccl_path, p);
    add(About::file, "CUDA runtime's file", h.cudart_path, p);
  }
  std::vector<Started> started;
  for (auto& [key, values] : all) {
    const bool is_variable = key.first == About::config || key.first == About::env;
    std::size_t n = 0;
    for (const auto& [value, some] : values) n += some.size();
    if (is_variable && n < processes.size()) {
      std::set<const Process*> have;
      for (const auto& [value, some] : values) have.insert(some.begin(), some.end());
      values[""] = select(processes, [&](const Process& p) { return !have.contains(&p); });
    }
    started.push_back({key.first, key.second, std::move(values)});
  }
  return started;
}

extern const Diagnosis kDifferences{kCheck | kSummary | kWhole | kDoctor, differences};

}  // namespace tprof::check
