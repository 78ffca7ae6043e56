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
  char name[256];        // the one that it is to have, until it is made
  NamedFile lines;       // the rank file itself
  NamedFile ring;      // if none (no path): anonymous memory, and a kill loses what was not written
  NamedFile snapshot;  // where the ring file is not beside the rank file
  bool ring_elsewhere;
  RingFolder ring_in;
};

// Says where the rank file is to be. A relative folder is one of the folder in which the process
// started. Touches no file.
void name_rank_file(const Config& config, const Process& process, RankFile& file);

// Creates the ring file: in memory, or where it can be in time (base/in_time.h).
void create_ring(const char* chosen, const Process& process, RankFile& file);

// Creates a file of that name, or of the next that nobody has (rank-00003.r1.json), in a folder
// that is made if need be. False: errno says why.
bool create_lines(const char* directory, char (&name)[256], NamedFile& file);

// Creates the rank file with its first lines, and the snapshot if there is to be one, on a thread
// of ours. False: there is no rank file, and one line says so.
// False, and nothing said, where may_be_created_later() is true right behind it.
bool create_rank_file(RankFile& file, Head& head, std::string_view header);
// True if the last call that failed found no free descriptor: until there is one, the ring file, if
// there is one, has all.
bool may_be_created_later(const RankFile& file);

// In a forked child: closes and forgets them. Where closing hangs, the end of the child would too.
void leave_files(RankFile& file);

// Removes a file that was created: an empty one would be taken for a trace.
void drop_file(NamedFile& file);

}  // namespace tprof
