// Calls by their place in the program (TPROF_CALLSITE).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "read/told_lines.h"
#include "run/lines.h"
#include "symbols/frames.h"
#include "tables/totals.h"

namespace tprof::tables {

using read::SiteFrame;

// Equal for the same place in all processes: only the file name of the object counts.
struct SiteKey {
  std::string object;  // empty: not known
  std::uint64_t offset = 0;
  std::string symbol;               // empty: not known
  std::vector<SiteFrame> frames{};  // Python's, innermost first
  std::vector<symbols::Frame> native{};
  bool native_cut = false;  // there were more

  auto operator<=>(const SiteKey&) const = default;  // NOLINT(modernize-use-nullptr)

  bool known() const { return !object.empty() || !frames.empty() || !native.empty(); }
};

// The sites of one process, by their numbers.
class SiteLines {
 public:
  static constexpr std::size_t kMost = 20'000;  // calls of later sites have no site

  explicit SiteLines(const read::Process& of) : process_(&of) {}
  // Keeps the site in a line; ignores other lines. Throws BadInput.
  void metadata(const read::Line& line);
  const SiteKey* find(std::int64_t number) const;         // null: not known
  const symbols::Names& names() const { return names_; }  // of native frames

 private:
  const read::Process* process_;
  std::map<std::int64_t, SiteKey> sites_;
  symbols::Names names_;
};

struct SiteTotals {
  // Directly executed calls with a line, by function.
  std::map<std::pair<SiteKey, std::pair<Bucket, std::string>>, read::Amounts> calls;
  bool all_lines = true;  // every call has a line, as far as its bucket gets any
  symbols::Names names;   // of native frames
};

std::string text_of(const SiteFrame& frame);  // "train.py:12 step"

// True if it is neither in an installed package nor in Python itself.
bool of_program(const SiteFrame& frame);

// Returns the program's innermost own frame; null if there is none.
const SiteFrame* program_frame(const SiteKey& site);

// Throws BadInput for an unreadable line.
SiteTotals site_totals(const run::Lines& lines);

}  // namespace tprof::tables
