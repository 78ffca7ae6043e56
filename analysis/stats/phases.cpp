#include "stats/phases.h"

namespace tprof::stats {

void add_phases(Phases& phases, const read::Rows& rows) {
  bool autograd = false;
  each_row(rows, [&](const read::Row& row) {
    autograd = autograd || row.thread == ThreadKind::autograd;
  });
  each_row(rows, [&](const read::Row& row) {
    Phase phase = autograd ? Phase::rest : Phase::unknown;
    if (row.thread == ThreadKind::autograd) phase = Phase::backward;
    if (row.thread == ThreadKind::mixed || row.mode == Mode::replayed) phase = Phase::unknown;
    phases[static_cast<std::size_t>(phase)][static_cast<std::size_t>(row.bucket)] += row.amounts;
  });
}

}  // namespace tprof::stats
