// Native frames of a trace, named from the objects on this machine.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tprof::symbols {

struct Place {
  std::string function;  // without arguments; empty: unknown
  std::string file;      // as given to the compiler; empty: unknown
  std::int64_t line = 0;
};

// A return address. It is equal in all processes, since only an object's file name and build id
// count.
struct Frame {
  std::string object;
  std::string build_id;  // hex; empty: none
  std::uint64_t offset = 0;

  auto operator<=>(const Frame&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Returns the name of a C++ function without arguments, and any other name unchanged.
std::string readable(const std::string& symbol);

class Names {
 public:
  // Notes a path of the object in a process.
  void may_be_at(const std::string& path, const std::string& object, const std::string& build_id);
  void add(const Names& others);  // adds their paths
  // Looks up the places of these frames.
  void find(const std::set<Frame>& frames);
  // Returns the frame's places; empty if unknown.
  const std::vector<Place>& of(const Frame& frame) const;

 private:
  std::map<std::pair<std::string, std::string>, std::set<std::string>> paths_;
  std::map<Frame, std::vector<Place>> places_;
};

}  // namespace tprof::symbols
