// Ring files of killed processes, which hold memory of the node until somebody recovers them. Each
// goes, whole, beside its rank file, where readers and recovery look first: it is moved and not
// replayed, since a copy needs to know nothing of what it copies, can be interrupted anywhere, and
// costs a process that is here for something else a few megabytes of reading and writing. Once a
// day is over, and there is no rank file, nobody can use it any more: then it goes.
//
// Never touched: what belongs to another user or another start of the machine; what a process holds
// a lock on, as each does for life, and who recovers it; what a process of this pid namespace has
// that still runs (closing all descriptors gives the lock back); of another namespace, where that
// can't be seen, what was awake within the hour; what does not fit beside its rank file.
#pragma once

#include "interpose/session/rank_file.h"

namespace tprof::left_rings {

// `mine`: the files of this process, in the folder of whose ring file the others are. Before the
// writer starts.
void begin(const RankFile& mine, const Process& process);

// On the writer's thread, whenever it wakes. At the start if another ring file is there, soon after
// (who was killed just before it may be looked at by others still) and then every hour there is a
// thread for it, which ends after 20 s or 512 MiB.
void look();

}  // namespace tprof::left_rings
