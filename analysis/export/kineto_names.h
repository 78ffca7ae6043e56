// Names of things in traces of PyTorch's profiler.
#pragma once

#include <string>
#include <string_view>

#include "read/events.h"

namespace tprof::trace_export {

// Returns the name of c10d's range around a call, or nothing if there is none. TensorBoard's
// profiler finds communication by the first five names. By all of them it finds where a trace
// without steps begins and ends.
std::string_view kineto_operation(std::string_view function);

// Returns PyTorch's name of a tensor's data type, and our own name of any other type.
std::string_view kineto_type(std::string_view dtype);

// Returns a name for what ran on the device. HTA takes `nccl...Kernel...` for communication, and
// Memcpy for memory. The name has no algorithm or protocol, since they are not known.
std::string kineto_kernel(const read::Event& e);

}  // namespace tprof::trace_export
