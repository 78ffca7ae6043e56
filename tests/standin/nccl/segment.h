// The memory that the ranks of one communicator share, and how they wait for each other in it.
//
// It is a file in a private folder of TMPDIR, named after the communicator. The first rank creates
// it, and the last one unlinks it. All zeros is a valid first state, so nobody has to set it up.
// Waiting sleeps (futex), and checks once a second whether the ranks waited for are still alive.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace standin {

constexpr size_t kWindow = 512 << 10;  // bytes per rank and half
constexpr size_t kMailbox = 64 << 10;  // bytes per sender and receiver

struct Mailbox {
  std::atomic<uint32_t> full;
  uint32_t bytes;
  alignas(64) char data[kMailbox];
};

struct SplitVote {
  std::atomic<uint32_t> ordinal;
  int32_t colour, key;
};

class Segment {
 public:
  Segment(uint64_t id, int nranks, int rank);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // All waits return false if they gave up (aborted, or nobody came within the time limit).
  bool all_joined() const;
  bool wait_joined();
  bool barrier();

  // A rank's window holds the data that it shows to the others between two barriers. Its two halves
  // are used in turn, so that one barrier per round is enough: a half is written again only after
  // the barrier that follows the round in which everybody has read it.
  char* window(int rank, uint64_t round);

  Mailbox& mailbox(int from, int to);
  uint32_t bell() const;  // read it before looking at mailboxes
  // Waits until somebody has rung since `before`. `waits_for` tells which ranks could.
  bool wait_bell(uint32_t before, const std::function<bool(int)>& waits_for);
  void ring(int rank);

  void vote(uint32_t ordinal, int colour, int key);
  bool wait_votes(uint32_t ordinal);
  const SplitVote& vote_of(int rank, uint32_t ordinal);

  void abort();
  bool aborted() const { return aborted_; }
  // True if somebody died or aborted while this rank waited, or a wait took too long: as NCCL, who
  // does not wait does not know. ncclCommGetAsyncError reports it.
  bool broken() const { return broken_; }

 private:
  struct Header;
  struct Rank;
  struct Wait;
  bool wait(std::atomic<uint32_t>& word, const std::function<bool()>& ready,
            const std::function<bool(int)>& waits_for);
  bool dead(int rank) const;
  Rank& rank_of(int rank) const;
  SplitVote* votes() const;

  const int nranks_, rank_;
  std::string path_;
  char* base_ = nullptr;
  size_t size_ = 0;
  uint32_t barriers_ = 0;
  std::atomic<bool> aborted_{false}, broken_{false};
};

}  // namespace standin
