// Native frames of a trace, and their names from the objects that are at hand on this machine.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "symbols/object.h"

namespace tprof::symbols {

// An address that a call returns to. Equal in all processes: of the object only the file's name
// counts, and its build id.
struct Frame {
  std::string object;
  std::string build_id;  // hex; empty: none
  std::uint64_t offset = 0;

  auto operator<=>(const Frame&) const = default;  // NOLINT(modernize-use-nullptr)
};

class Names {
 public:
  // A path that a process had the object from.
  void may_be_at(const std::string& path, const std::string& object, const std::string& build_id);
  void add(const Names& others);  // their paths
  // Looks up those that are not yet known.
  void find(const std::set<Frame>& frames);
  // Empty: not known.
  const std::vector<Place>& of(const Frame& frame) const;

 private:
  std::map<std::pair<std::string, std::string>, std::set<std::string>> paths_;
  std::map<Frame, std::vector<Place>> places_;
};

}  // namespace tprof::symbols
