// What things are called in traces of PyTorch's profiler.
#pragma once

#include <string>
#include <string_view>

#include "read/events.h"

namespace tprof::trace_export {

// c10d's range around a call. By the first five names TensorBoard's profiler finds communication,
// and by all of them where a trace without steps begins and ends. Empty: there is none.
std::string_view kineto_operation(std::string_view function);

// Of a data type, as of a tensor's elements; of others our own.
std::string_view kineto_type(std::string_view dtype);

// What ran on the device. HTA takes `nccl...Kernel...` for communication, Memcpy for memory. There
// is no algorithm and no protocol in it: they are not known.
std::string kineto_kernel(const read::Event& e);

}  // namespace tprof::trace_export
