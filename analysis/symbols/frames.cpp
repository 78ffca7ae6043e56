#include "symbols/frames.h"

#include <memory>

#include "symbols/object.h"

namespace tprof::symbols {

namespace {

constexpr std::size_t kPaths = 16;  // per object

}  // namespace

void Names::may_be_at(const std::string& path, const std::string& object,
                      const std::string& build_id) {
  auto& paths = paths_[{object, build_id}];
  if (!build_id.empty() && paths.size() < kPaths) paths.insert(path);
}

void Names::add(const Names& others) {
  for (const auto& [object, paths] : others.paths_) {
    for (const std::string& path : paths) may_be_at(path, object.first, object.second);
  }
}

// Frames are in the order of their objects, so each object is opened once, and alone.
void Names::find(const std::set<Frame>& frames) {
  std::unique_ptr<Object> object;
  std::pair<std::string, std::string> opened;
  for (const Frame& frame : frames) {
    const std::pair key(frame.object, frame.build_id);
    if (object == nullptr || key != opened) {
      opened = key;
      object.reset();
      for (const std::string& path : paths_[key]) {
        object = std::make_unique<Object>(path, frame.build_id);
        if (object->known()) break;
      }
    }
    if (object != nullptr && object->known()) places_[frame] = object->places(frame.offset);
  }
}

const std::vector<Place>& Names::of(const Frame& frame) const {
  static const std::vector<Place> kNone;
  const auto found = places_.find(frame);
  return found == places_.end() ? kNone : found->second;
}

}  // namespace tprof::symbols
