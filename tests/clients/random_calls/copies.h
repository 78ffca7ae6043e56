// Copies of one rank, in every form: what they go between is drawn here.
#pragma once

#include "player.h"

struct Ends {
  char* to;
  char* from;
  cudaMemcpyKind kind;
  char* device;  // of the two, or of both the first; null: both are the host's
};

// Room for kRegion bytes at both ends. `pinned`: no host memory that the driver does not know.
Ends draw_ends(Dice& d, const Rank& r, bool pinned = false);
cudaStream_t draw_stream(Dice& d, const Rank& r);

// One call each.
void line_copy(Dice& d, const Rank& r);
void box_copy(Dice& d, const Rank& r);
void array_copy(Dice& d, Rank& r);
void batch_copy(Dice& d, const Rank& r);
void driver_copy(Dice& d, const Rank& r);
void refused_copy(Dice& d, const Rank& r);
// What a stream that captures takes; also outside of a capture.
void asynchronous_copy(Dice& d, const Rank& r, cudaStream_t stream);

// Which function a form is made by: now and then the per-thread twin.
#define EITHER(d, function, twin, ...) \
  OK((d).chance(75) ? CALL(function)(__VA_ARGS__) : CALL(twin)(__VA_ARGS__))
// Where the header's C++ has another function of the same name.
#define EITHER_LINKED(d, function, twin, ...) \
  OK((d).chance(75) ? function(__VA_ARGS__) : twin(__VA_ARGS__))
