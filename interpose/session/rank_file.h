// The folders and the names of a process's files.
#pragma once

#include <string_view>

#include "interpose/base/disk_space.h"
#include "interpose/base/file_systems.h"
#include "interpose/format/ring_file.h"
#include "interpose/session/config.h"
#include "interpose/session/process.h"

namespace tprof {

struct NamedFile : OwnFile {
  char path[1300];
};

struct RankFile {
  char directory[1024];  // absolute
  char name[256];        // the intended one until it is made
  NamedFile lines;       // the rank file itself
  NamedFile ring;        // no path: anonymous memory, and a kill loses what was not written
  NamedFile snapshot;    // if the ring file is not beside the rank file
  bool ring_elsewhere;
  RingFolder ring_in;
};

// Determines the rank file's folder and name. A relative folder is in the folder in which the
// process started. Touches no file.
void name_rank_file(const Config& config, const Process& process, RankFile& file);

// Creates the ring file: in memory, or on a disk that answers in time (base/in_time.h).
void create_ring(const char* chosen, const Process& process, RankFile& file);

// Creates the rank file with its first lines, and the snapshot if needed, on a thread of ours.
// Returns false if there is no rank file, and reports it.
bool create_rank_file(RankFile& file, Head& head, std::string_view header);

// In a forked child: closes and forgets the files.
void leave_files(RankFile& file);

// Removes a created file: an empty one would look like a trace.
void drop_file(NamedFile& file);

}  // namespace tprof
