// Cleans up ring files of killed processes, which hold memory of the node until they are recovered.
// Each is moved, whole, beside its rank file, where readers and recovery look first. It is not
// recovered here: a copy needs no knowledge of the contents, can be interrupted anywhere, and costs
// this process only a few megabytes of reading and writing. A ring file whose rank file is gone is
// of no use: it is removed after a day.
//
// Never touched are files of another user or another boot; files locked by a process (each locks
// its own for life, and a recovery locks them); files of a running process of this pid namespace
// (closing all descriptors releases the lock); files of another pid namespace whose process was
// awake within the hour; and files that don't fit beside their rank file.
#pragma once

#include "interpose/session/rank_file.h"

namespace tprof::left_rings {

// `mine` are the files of this process; others are looked for in the folder of its ring file.
// Called before the writer starts.
void begin(const RankFile& mine, const Process& process);

// Called on the writer's thread whenever it wakes. Starts a thread that looks: at the start, and
// then every ten minutes. It ends after 20 s or 512 MiB.
void look();

}  // namespace tprof::left_rings
