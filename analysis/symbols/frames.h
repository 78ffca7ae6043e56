// Native frames of a trace, and their names from the objects that are at hand on this machine.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tprof::symbols {

struct Place {
  std::string function;  // without its arguments; empty: not known
  std::string file;      // as the compiler was given it; empty: not known
  std::int64_t line = 0;
};

// An address that a call returns to. It is equal in all processes, since an object counts only by
// its file's name and its build id.
struct Frame {
  std::string object;
  std::string build_id;  // hex; empty: none
  std::uint64_t offset = 0;

  auto operator<=>(const Frame&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Returns the name of a C++ function without its arguments, and any other name as it stands.
std::string readable(const std::string& symbol);

class Names {
 public:
  // Notes a path that a process had the object from.
  void may_be_at(const std::string& path, const std::string& object, const std::string& build_id);
  void add(const Names& others);  // adds their paths
  // Looks up the places of these frames.
  void find(const std::set<Frame>& frames);
  // Returns nothing if the frame's places are not known.
  const std::vector<Place>& of(const Frame& frame) const;

 private:
  std::map<std::pair<std::string, std::string>, std::set<std::string>> paths_;
  std::map<Frame, std::vector<Place>> places_;
};

}  // namespace tprof::symbols
