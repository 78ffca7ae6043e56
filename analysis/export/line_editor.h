// Moves one line of a process to another pid and another time axis: any but those of calls, their
// times on the device and computation, which have a quicker way (part_editor.h).
#pragma once

#include "export/event_fields.h"
#include "export/nesting.h"
#include "export/placement.h"
#include "read/lines.h"

namespace tprof::trace_export {

class LineEditor {
 public:
  // Writes the edited line. Every value stays as it is but pid and times. Leaves it out if it is
  // not for the merged trace: lines of other tools, names of processes and arrows, of which merge
  // writes its own, the header of a node's file, and what nobody asked for. Throws read::Malformed.
  // `slices`: those of the process; null: they are not known.
  void edit(const read::Line& line, const Member& member, const Nesting* slices, Pen& out);
  // Returns the arguments of a line but those that merge adds, and what ends the line.
  std::string arguments(const read::Line& line);

 private:
  EventFields event_;
  EventFields args_;
};

}  // namespace tprof::trace_export
