// The mapped file that a traced process keeps beside its rank file (interpose/format/ring_file.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "interpose/base/not_copied.h"
#include "interpose/format/view.h"
#include "read/lines.h"
#include "read/load.h"
#include "read/process.h"

namespace tprof::read {

// Returns the boot id of this machine, which changes with every start.
std::string boot_id();

// The inode of this process's pid namespace; 0: not known.
std::uint32_t own_pid_namespace();

// A process of this machine, as /proc tells it.
struct ProcStat {
  char state = '?';  // of the main thread: R, S, D, T, t, Z, X: proc(5)
  std::int64_t parent = 0;
  std::uint64_t flags = 0;
  std::uint64_t start_ticks = 0;  // since boot
};

// nullopt: there is no such process, or it can't be read.
std::optional<ProcStat> proc_stat(std::int64_t pid, const std::filesystem::path& proc = "/proc");

// True if the process that started then has ended, as far as its program goes: each of its threads
// is a zombie, or gives back what it has, such as memory, and after that files and their locks.
// False too if there is no such process.
bool exits(std::int64_t pid, std::uint64_t start_ticks,
           const std::filesystem::path& proc = "/proc");

// True if the process with this pid on this machine is the one that started at `start_ticks` (of
// /proc), and has not ended. The pid may have been given to another process since.
bool process_lives(std::int64_t pid, std::uint64_t start_ticks);

// A ring file that is open, mapped, and of this version. Its bytes change while its process lives.
class RingFile {
 public:
  // Returns nullopt if there is no such file. Throws BadInput if it is no usable ring file.
  static std::optional<RingFile> open(const std::filesystem::path& file);

  const std::filesystem::path& path() const { return path_; }
  // The mapping is read-only, whatever the types say.
  View view() const { return {opened_->base, opened_->size}; }
  bool belongs_to(const Header& header) const;
  // The process's rank file, by the name that it has or was to have.
  std::filesystem::path rank_file() const;
  // True if the process could not make its rank file yet, or not write its first lines. This file
  // has all that is known then.
  bool is_alone() const;

  // True if its process lives. The process holds a lock on the file, which other containers see
  // too. If it closed the file (closefrom(3)), or the file system has no locks, its pid tells on
  // this host.
  bool running() const;
  // Keeps others from recovering the same process while this object exists. False if somebody else
  // is recovering it, or has done so and removed the file.
  bool lock();
  // The word by which the process is asked to do something, to be written as long as this object
  // exists; null if somebody else writes it. Throws BadInput if the file is not this user's to
  // write.
  Control* lock_control();
  // Notes that the process's rank file is made, under this name. Call lock() before.
  void note_rank_file(const std::string& name, std::uint64_t inode);

 private:
  struct Opened : NotCopied {
    int fd = -1;
    void* base = nullptr;
    std::size_t size = 0;
    void* writable = nullptr;  // the head once more

    ~Opened();
  };
  explicit RingFile(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
  std::unique_ptr<Opened> opened_ = std::make_unique<Opened>();
};

// Returns the ring file of the process that wrote the header, or nullopt if there is none. It is
// beside the rank file, where a dead process's may have been moved
// (interpose/session/left_rings.h), or where the header says.
std::optional<RingFile> ring_of(const std::filesystem::path& rank_file, const Header& header);

// Returns how many bytes of the rank file are committed; recovery leaves these as they are. Throws
// BadInput if nothing was committed.
std::uint64_t committed_bytes(const RingFile& ring);

// The end that an unclosed rank file lacks, as the process left it in its ring file. Used to read
// an unclosed file, to watch a running process, and to recover a dead one.
struct Replay {
  Source source;         // the rest is as the writer would have written it: events, ledger, footer
  bool running = false;  // the process lives: calls that are open may still return
};

// Throws BadInput if no state was ever committed, as the process died while it started. `wanted`
// applies to a running process only; from a dead one everything is taken.
Replay replay(const RingFile& ring, const std::filesystem::path& rank_file,
              Wanted wanted = Wanted::lines);

// The ring file of a process of this user, from this boot of this machine.
struct LeftRing {
  std::filesystem::path ring{};
  std::filesystem::path folder{};     // as the process saw it, perhaps in another container
  std::filesystem::path rank_file{};  // in that folder
  bool alone = false;                 // there is no rank file yet
  bool running = false;
  std::uint64_t header_bytes = 0;  // of its first lines
  std::uint64_t silent_ns = 0;     // since the process was last awake
  std::uint64_t bytes = 0;         // of memory or disk
  bool removed = false;            // so was the folder, and nobody can use the ring any more

  bool has_rank_file() const;
  bool is_of(const std::filesystem::path& folder) const;
};

// Returns the ring files of processes that wrote to `folder`, and of others that kept theirs in the
// same places. Looks at ring files only, so that thousands of rank files of other machines don't
// slow it down.
std::vector<LeftRing> rings_of(const std::filesystem::path& folder);
// The same of dead processes.
std::vector<LeftRing> left_rings(const std::filesystem::path& folder);

}  // namespace tprof::read
