#include "diagnose/diagnosis.h"

namespace tprof::diagnose {

// One row each. If two findings have the same severity, the one from the upper row is shown first.
#define TPROF_DIAGNOSES(row)                                                                     \
  row(kMissingRanks) row(kMissingMembers) row(kDuplicateRanks) row(kNotClosed) row(kOverflow)    \
      row(kWithoutEffect) row(kMismatch) row(kOpenMismatch) row(kHang) row(kPointToPoint)        \
          row(kLedgerLines) row(kLedgerDecreased) row(kClockStep) row(kLateRanks) row(kCoverage) \
              row(kDropped) row(kUntimedCalls) row(kMissingWindows) row(kOtherRuns)              \
                  row(kAssumedJob) row(kNotCompared) row(kSkippedFiles)

#define TPROF_DECLARE(name) extern const Diagnosis name;
TPROF_DIAGNOSES(TPROF_DECLARE)
#undef TPROF_DECLARE

std::span<const Diagnosis* const> diagnoses() {
#define TPROF_ADDRESS(name) &name,
  static constexpr const Diagnosis* kDiagnoses[] = {TPROF_DIAGNOSES(TPROF_ADDRESS)};
#undef TPROF_ADDRESS
  return kDiagnoses;
}

}  // namespace tprof::diagnose
