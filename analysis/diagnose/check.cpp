#include "diagnose/check.h"

#include <algorithm>

#include "diagnose/problems.h"

namespace tprof::diagnose {

bool Checked::healthy() const {
  return std::ranges::all_of(findings,
                             [](const Problem& p) { return p.severity == Severity::note; });
}

Checked check(const match::Job& job, const read::Traces& traces, const CheckOptions&) {
  Checked c{.job = &job, .communicators = communicators(job), .agreements = {}, .findings = {}};
  for (const Communicator& comm : c.communicators) c.agreements.push_back(agreement_of(comm));
  c.findings = problems(job, traces.skipped, true);
  return c;
}

}  // namespace tprof::diagnose
