// A player is a thread that holds some ranks and makes calls for all of them. Its common dice show
// the same to all players, and choose what concerns other players' ranks too. Its own dice choose
// the rest.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../check.h"
#include "dice.h"

struct Options {
  std::uint64_t seed = 1;
  int turns = 200;
  // There are threads x processes players, and each holds `held` ranks.
  int threads = 1, held = 1, processes = 1, process = 0;
  int copiers = 0;  // threads that make copies and nothing else
  int refused = 1;  // also makes calls that the libraries refuse
  int by_pointer = 0;
  int fork_first = 0;  // forks before any call; the child plays a program of its own
  int driver = 0;
  int odd = -1;       // the rank that plays one collective differently
  int odd_turn = -1;  // in this turn, or the first possible one after it
  int tell = 0;       // prints what is called, on standard error
  int kill = -1;      // the first player's turn before which the process kills itself
  std::string ids;    // a folder through which the players agree on NCCL ids

  int players() const { return threads * processes; }
  int world() const { return players() * held; }
};

// The number of devices whose default streams a rank uses besides its own device's.
constexpr int kOtherDevices = 4;
constexpr std::size_t kRegion = 256 << 10;  // bytes of memory for one operand

// One rank, and the memory that its calls move.
struct Rank {
  int rank = 0;
  int device = 0;
  cudaStream_t streams[3] = {};  // the last one blocks with the legacy stream
  char *memory = nullptr, *pinned = nullptr, *managed = nullptr, *pageable = nullptr;
  // Memory of changing kinds.
  enum class Scratch { device, managed, pinned, registered, pageable };
  char* scratch = new char[kRegion];
  Scratch scratch_kind = Scratch::pageable;
  cudaEvent_t forked = nullptr, joined = nullptr;
};

// The communicators of one kind on all ranks. There is one handle for each rank of the player, null
// for a rank that is in none. A family made by a split may have several communicators.
struct Family {
  std::vector<ncclComm_t> of;
  std::vector<int> size, place;       // of the communicator, and place in it; for each handle
  std::vector<std::uint64_t> issued;  // collectives that were accepted
  int number = 0;
  bool blocking = true;
  // Ranks that were left out count their parent's children differently from the others.
  bool shrunk = false;
};

// The same for graphs, and for the executables made of them.
struct Graphs {
  std::vector<cudaGraph_t> of;
  std::vector<int> used;  // families of communicators whose collectives are in it
  int number = 0;
  int version = 0;  // higher with every node that comes or goes
};
struct Executables {
  std::vector<cudaGraphExec_t> of;
  std::vector<int> used;
  int number = 0;
  int graph = 0, version = 0;  // of the graph that it was made of
};

struct Player {
  Player(const Options& options, int index);

  const Options& o;
  int index;
  int turn = 0;
  Dice common, own;
  std::vector<Rank> ranks;
  std::vector<Family> families;
  int families_made = 0;
  std::vector<Graphs> graphs;
  std::vector<Executables> executables;
  int graphs_made = 0, executables_made = 0;
  bool odd_done = false;
};

void make_world(Player& p);
void nccl_turn(Player& p);
void life_turn(Player& p);
void copy_turn(Player& p, Dice& d, Rank& r);
void graph_turn(Player& p);
// Destroys the graphs and executables that use a family which ends.
void forget_graphs_with(Player& p, int family);
// Makes a collective on the first stream of each rank, which captures; returns its family's number.
int captured_collectives(Player& p);
void synchronize(const Player& p);
void synchronize(const Rank& r);

inline bool accepted(ncclResult_t result) {
  return result == ncclSuccess || result == ncclInProgress;
}

// Returns a function as the program is linked to it or, where it may be, now and then from dlsym.
void* by_pointer(const char* name);
void tell(const Player& p, const char* format, ...) __attribute__((format(printf, 2, 3)));
template <class F>
F* entry(F* linked, const char* name) {
  void* taken = by_pointer(name);
  return taken == nullptr ? linked : reinterpret_cast<F*>(taken);
}
#define CALL(function) entry(&function, #function)
