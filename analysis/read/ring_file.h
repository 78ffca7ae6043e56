// The mapped file that a traced process keeps beside its rank file (interpose/format/ring_file.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "interpose/format/view.h"
#include "read/lines.h"
#include "read/load.h"
#include "read/process.h"

namespace tprof::read {

// Of this machine, since its last start.
std::string boot_id();

// Whether the process of this machine that had the pid then is there, and no zombie. `start_ticks`:
// /proc's, since the pid may have been given to another one.
bool process_lives(std::int64_t pid, std::uint64_t start_ticks);

// Open, mapped, and of this version. Its bytes change while its process lives.
class RingFile {
 public:
  // Nothing where there is no such file. Throws BadInput for one that is not ours.
  static std::optional<RingFile> open(const std::filesystem::path& file);

  RingFile(RingFile&& other) noexcept;
  RingFile(const RingFile&) = delete;
  RingFile& operator=(const RingFile&) = delete;
  ~RingFile();

  const std::filesystem::path& path() const { return path_; }
  // Read only, whatever its types say.
  View view() const { return {base_, size_}; }
  bool belongs_to(const Header& header) const;

  // Whether its process lives. The process holds a lock on the file, which is seen from other
  // containers too; and on this host its pid tells, where it closed the file (closefrom(3)) or the
  // file system has no locks.
  bool running() const;
  // Keeps others from recovering the same process, until this object goes. False: somebody does so,
  // or has, and removed the file.
  bool lock();

 private:
  RingFile(std::filesystem::path path, int fd, void* base, std::size_t size);

  std::filesystem::path path_;
  int fd_ = -1;
  void* base_ = nullptr;
  std::size_t size_ = 0;
};

// The ring file of the process that wrote the header: beside the rank file, where that of a dead
// one may have been moved to (interpose/session/left_rings.h), or where the header says. Nothing
// where there is none.
std::optional<RingFile> ring_of(const std::filesystem::path& rank_file, const Header& header);

// So many bytes of the rank file are committed: recovery leaves them as they are. Throws BadInput
// where nothing was.
std::uint64_t committed_bytes(const RingFile& ring);

// What a process that did not close left in its ring file: the end that the rank file lacks.
// Reading an unclosed file, watching a running process and recovering a dead one all come through
// here.
struct Replay {
  std::uint64_t cut = 0;  // bytes of the rank file that the lines below follow
  std::string lines;      // as the writer would have written them: events, ledger, footer
  bool running = false;   // the process lives: calls that are open may still return
  std::map<std::string, Rest> windows;  // files that are not complete, by name: the same of these
};

// Throws BadInput where no state was ever committed: the process died while it started. `wanted` is
// of a process that runs; of another all is taken.
Replay replay(const RingFile& ring, const std::filesystem::path& rank_file,
              Wanted wanted = Wanted::lines);

// The ring file of a process of this user and this machine, since its last start, that is dead.
struct LeftRing {
  std::filesystem::path ring;
  std::filesystem::path folder;     // as the process saw it: another container's may not be there
  std::filesystem::path rank_file;  // in it
  std::uint64_t silent_ns;          // since the process was last awake

  bool has_rank_file() const;
};

// Of processes that wrote to `folder`, and of those that kept their ring file where these may.
// Looks at ring files only, so that it takes no longer for the thousands of rank files of other
// machines.
std::vector<LeftRing> left_rings(const std::filesystem::path& folder);

}  // namespace tprof::read
