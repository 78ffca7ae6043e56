#include "stats/memory.h"

namespace tprof::stats {

Memory memory_of(const job::Job& job) {
  Memory memory;
  for (const read::Process* p : job.processes) {
    if (!p->ledger || !p->ledger->memory) continue;
    memory.asked = true;
    for (const read::MemoryUse& use : *p->ledger->memory) memory.uses.push_back({p, use});
  }
  return memory;
}

}  // namespace tprof::stats
