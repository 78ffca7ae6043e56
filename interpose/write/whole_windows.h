// A sink: gives windows' files their end (TPROF_WINDOW_FILES) and windows their line.
#pragma once

#include "interpose/write/line_batch.h"
#include "interpose/write/sink.h"

namespace tprof {

struct WholeWindows : Sink {
  // oldest: because the next one needs its place. late: those that have ended a second ago. all:
  // because nothing more comes to any of them.
  enum class Which { oldest, late, all };
  // Completes files in commits of their own, so that a kill leaves a file as it was or complete
  // with the same lines.
  static void complete(LineBatch& lines, Which which);

  void tick(LineBatch& lines, const ClockAnchor& /*now*/) { complete(lines, Which::late); }
};

}  // namespace tprof
