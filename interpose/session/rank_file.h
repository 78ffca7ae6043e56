// The folders and the names of a process's files.
#pragma once

#include "interpose/base/disk_space.h"
#include "interpose/session/config.h"
#include "interpose/session/process.h"

namespace tprof {

struct NamedFile : OwnFile {
  char path[1300];
};

struct RankFile {
  char directory[1024];  // absolute
  char name[256];
  NamedFile lines;     // the rank file itself
  NamedFile ring;      // if none (no path): anonymous memory, and a kill loses what was not written
  NamedFile snapshot;  // where the ring file is not beside the rank file
  bool ring_elsewhere;
  bool ring_keeps_room;  // in memory that others count on: kSpareRoom stays free
};

// Creates rank file and ring file; never overwrites anything. False: there is no rank file, and one
// line says so.
bool create_rank_file(const Config& config, const Process& process, RankFile& file);
void create_snapshot(RankFile& file);

// In a forked child: closes all of them, except where the program has closed one and reused its
// number.
void leave_files(RankFile& file);

// Removes a file that was created: an empty one would be taken for a trace.
void drop_file(NamedFile& file);

}  // namespace tprof
