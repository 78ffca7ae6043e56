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

// Returns the boot id of this machine, which changes with every boot.
std::string boot_id();

// Returns the inode of this process's pid namespace; 0: unknown.
std::uint32_t own_pid_namespace();

// A process of this machine, from /proc.
struct ProcStat {
  char state = '?';  // of the main thread: R, S, D, T, t, Z, X: proc(5)
  std::int64_t parent = 0;
  std::uint64_t flags = 0;
  std::uint64_t start_ticks = 0;  // since boot
};

// nullopt: there is no such process, or it can't be read.
std::optional<ProcStat> proc_stat(std::int64_t pid, const std::filesystem::path& proc = "/proc");

// True if the program of this process has ended: each of its threads is a zombie, or is releasing
// memory, files and locks. False too if there is no such process.
bool exits(std::int64_t pid, std::uint64_t start_ticks,
           const std::filesystem::path& proc = "/proc");

// True if the process with this pid on this machine started at `start_ticks` (of /proc) and has not
// ended. Another process may have the pid now.
bool process_lives(std::int64_t pid, std::uint64_t start_ticks);

// An open, mapped ring file of this version. Its bytes change while its process lives.
class RingFile {
 public:
  // Returns nullopt if the file does not exist. Throws BadInput if it is no usable ring file.
  static std::optional<RingFile> open(const std::filesystem::path& file);

  const std::filesystem::path& path() const { return path_; }
  // The mapping is read-only, in spite of the types.
  View view() const { return {opened_->base, opened_->size}; }
  bool belongs_to(const Header& header) const;
  // Returns the process's rank file, which may not exist yet.
  std::filesystem::path rank_file() const;
  // True if the process could not create its rank file yet, or not write its first lines. Then
  // everything known is in this file.
  bool is_alone() const;

  // True if its process lives. The process holds a lock on the file, which other containers see
  // too. If it closed the file (closefrom(3)), or the file system has no locks, its pid tells, on
  // this host only.
  bool running() const;
  // Keeps others from recovering the same process while this object exists. False if another tool
  // is recovering it, or has done so and removed the file.
  bool lock();
  // Returns the control word, writable while this object exists; null if another tool is writing
  // it. Throws BadInput if this user may not write the file.
  Control* lock_control();
  // Notes that the process's rank file now exists under this name. Call lock() first.
  void note_rank_file(const std::string& name, std::uint64_t inode);

 private:
  struct Opened : NotCopied {
    int fd = -1;
    void* base = nullptr;
    std::size_t size = 0;
    void* writable = nullptr;  // a second mapping of the head

    ~Opened();
  };
  explicit RingFile(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
  std::unique_ptr<Opened> opened_ = std::make_unique<Opened>();
};

// Returns the ring file of the process that wrote the header, or nullopt. It is where the header
// says or beside the rank file, where a dead process's ring file may have been moved
// (interpose/session/left_rings.h).
std::optional<RingFile> ring_of(const std::filesystem::path& rank_file, const Header& header);

// Returns how many bytes of the rank file are committed, which recovery keeps. Throws BadInput if
// nothing was committed.
std::uint64_t committed_bytes(const RingFile& ring);

// The missing end of an unclosed rank file, made from the ring file. Used to read an unclosed file,
// to watch a running process, and to recover a dead one.
struct Replay {
  Source source;         // the rest is what the writer would have written: events, ledger, footer
  bool running = false;  // the process lives: open calls may still return
};

// Throws BadInput if nothing was ever committed, because the process died during its start.
// `wanted` applies to running processes only.
Replay replay(const RingFile& ring, const std::filesystem::path& rank_file,
              Wanted wanted = Wanted::lines);

// The ring file of a process of this user and this boot.
struct LeftRing {
  std::filesystem::path ring{};
  std::filesystem::path folder{};     // as the process sees it, perhaps in a container
  std::filesystem::path rank_file{};  // in `folder`
  bool alone = false;                 // there is no rank file yet
  bool running = false;
  std::uint64_t header_bytes = 0;  // size of its first lines
  std::uint64_t silent_ns = 0;     // since the process's last sign of life
  std::uint64_t bytes = 0;         // of memory or disk space
  bool useless = false;            // its rank file has been gone for a day

  bool has_rank_file() const;
  bool is_of(const std::filesystem::path& folder) const;
};

// Returns the ring files in all places that processes that write to `folder` use, including those
// of other processes. Looks at ring files only, so thousands of rank files of other machines don't
// matter.
std::vector<LeftRing> rings_of(const std::filesystem::path& folder);
// The same, of dead processes only.
std::vector<LeftRing> left_rings(const std::filesystem::path& folder);

}  // namespace tprof::read
