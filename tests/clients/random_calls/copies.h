// Copies of one rank, in every form, and the random ends that they go between.
#pragma once

#include "player.h"

struct Ends {
  char* to;
  char* from;
  cudaMemcpyKind kind;
  char* device;  // the end on the device, the first one if both are; null: both are on the host
};

// Draws ends with room for kRegion bytes each. `pinned`: the driver knows all of the host memory.
Ends draw_ends(Dice& d, const Rank& r, bool pinned = false);
cudaStream_t draw_stream(Dice& d, const Rank& r);

// Each makes one call.
void line_copy(Dice& d, const Rank& r);
void box_copy(Dice& d, const Rank& r);
void batch_copy(Dice& d, const Rank& r);
void driver_copy(Dice& d, const Rank& r);
void refused_copy(Dice& d, const Rank& r);
// Makes a copy that a capturing stream accepts; it also works outside a capture.
void asynchronous_copy(Dice& d, const Rank& r, cudaStream_t stream);

// Calls a function or, now and then, its per-thread twin.
#define EITHER(d, function, twin, ...) \
  OK((d).chance(75) ? CALL(function)(__VA_ARGS__) : CALL(twin)(__VA_ARGS__))
// The same for functions whose name the header's C++ overloads.
#define EITHER_LINKED(d, function, twin, ...) \
  OK((d).chance(75) ? function(__VA_ARGS__) : twin(__VA_ARGS__))
