// The questions of a test to instant_cuda.cpp.
#pragma once

extern "C" {

// The next call of that name stands: at its beginning, cuStreamGetCtx before it returns. Null: it
// goes on.
void instant_stands(const char* name);
long instant_standing();
// Returns a new context, which is the thread's.
struct CUctx_st* instant_context(int device);
// How often events and streams were used that were gone, and events recorded in streams that
// captured.
long instant_misused();
long instant_captured();

}  // extern "C"
