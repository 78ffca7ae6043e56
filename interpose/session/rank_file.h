// Where the files of a process go and what they are called.
#pragma once

#include "interpose/base/disk_space.h"
#include "interpose/session/config.h"
#include "interpose/session/process.h"

namespace tprof {

struct RankFile {
  int fd = -1;
  FileId id;
  char directory[1024];  // absolute
  char name[256];
  int ring_fd = -1;  // -1: anonymous memory, a kill loses what was not written
  FileId ring_id;
  char ring_path[1300];  // "" if ring_fd is -1
  bool ring_elsewhere;   // not beside the rank file
  bool ring_keeps_room;  // in memory that others count on: kSpareRoom stays free
  int snapshot_fd = -1;  // -1: there is none
  FileId snapshot_id;
  char snapshot_path[1300];
};

// Creates rank file and ring file; never overwrites anything. False, with one line said: no rank
// file.
bool create_rank_file(const Config& config, const Process& process, RankFile& file);

// Where the ring file is not beside the rank file.
void create_snapshot(RankFile& file);

// In a forked child: gives all back, unless the program has closed them and made something else of
// their numbers.
void leave_files(RankFile& file);

// Take back what was created: an empty file would be taken for a trace.
void drop_ring_file(RankFile& file);
void drop_snapshot(RankFile& file);
void drop_rank_file(RankFile& file);

}  // namespace tprof
