// Where the files of a process go and what they are called.
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
  NamedFile ring;      // none, and no path: anonymous memory, a kill loses what was not written
  NamedFile snapshot;  // where the ring file is not beside the rank file
  bool ring_elsewhere;
  bool ring_keeps_room;  // in memory that others count on: kSpareRoom stays free
};

// Creates rank file and ring file; never overwrites anything. False, with one line said: no rank
// file.
bool create_rank_file(const Config& config, const Process& process, RankFile& file);
void create_snapshot(RankFile& file);

// In a forked child: gives all back, unless the program has closed them and made something else of
// their numbers.
void leave_files(RankFile& file);

// Takes back what was created: an empty file would be taken for a trace.
void drop_file(NamedFile& file);

}  // namespace tprof
