// The report of `tprof doctor`, before it is text or JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "check/coverage.h"
#include "check/finding.h"
#include "interpose/format/settings.h"

namespace tprof::doctor {

struct Fact {
  std::string key;
  std::string text;
};

// A wrapped function, and the library that serves it.
struct Function {
  std::string name;
  std::string library;      // path; empty: none was found
  std::uint64_t calls = 0;  // of all ranks
  text::Ranks ranks{};      // ranks that called this library; empty: all of them
};

struct Report {
  std::string about;  // "machine", "command" or "trace"
  std::vector<Fact> facts{};
  std::vector<Function> functions{};
  bool counted = false;                           // the calls of functions are known
  std::map<std::string, std::string> settings{};  // as they are set
  std::map<std::string, std::string> differ{};    // those of ranks that differ, with whose they are
  std::vector<Fact> tools{};                      // their kinds and paths
  check::Findings findings{};

  void fact(std::string key, std::string text) {
    facts.push_back({std::move(key), std::move(text)});
  }
  check::Finding& find(check::Kind kind, check::Values values = {}) {
    return check::add(findings, kind, {}, std::move(values));
  }
  // Adds a finding on what a kind of library or tool at `path` means if `variables` are set
  // (check/coverage.h).
  void find_meaning(const std::string& kind, std::string_view path,
                    const check::Variables& variables);
  // Returns what a setting is set to, or its default if that is empty or not accepted.
  std::string in_force(const SettingInfo& setting) const;
};

std::string to_text(const Report& report);
std::string to_json(const Report& report);

}  // namespace tprof::doctor
