// Ring files of killed processes, which hold memory of the node until somebody recovers them. Each
// is moved, whole, beside its rank file, where readers and recovery look first. It is moved and not
// replayed: a copy needs to know nothing of what it copies, and can be interrupted anywhere. It
// costs a process that is here for something else a few megabytes of reading and writing. A ring
// file without a rank file is removed after a day, since nobody can use it any more; at once, if
// the rank file's folder is proved to be removed (base/folder_id.h).
//
// These are never touched: files of another user or of another start of the machine; files that a
// process holds a lock on, as each process does for life and a recovery does; files of a process in
// this pid namespace that still runs (closing all descriptors gives the lock back); files of
// another pid namespace, where that can't be seen, whose process was awake within the hour; and
// files that do not fit beside their rank file.
#pragma once

#include "interpose/session/rank_file.h"

namespace tprof::left_rings {

// `mine` are the files of this process; the others are in the folder of its ring file. Called
// before the writer starts.
void begin(const RankFile& mine, const Process& process);

// Called on the writer's thread, whenever it wakes. Starts a thread that looks: at the start if
// another ring file is there, soon after, and then every hour. The thread ends after 20 s or 512
// MiB. The second look is for processes that were killed just before the first, whose files others
// may still look at.
void look();

}  // namespace tprof::left_rings
