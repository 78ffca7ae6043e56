// A thread's purpose, taken from its name. A process's ledger is kept by thread, so splitting it by
// purpose costs nothing.
#pragma once

#include <cstdint>
#include <string_view>

namespace tprof {

// autograd: PyTorch's, which runs a device's backward pass. mixed: many threads' calls.
enum class ThreadKind : std::uint8_t { other, autograd, mixed };

inline constexpr std::string_view kAutogradThread = "autograd";  // its name in lines

// `name` is the thread's name. PyTorch's autograd threads are pt_autograd_<device>.
constexpr ThreadKind thread_kind(std::string_view name) {
  return name.starts_with("pt_autograd_") ? ThreadKind::autograd : ThreadKind::other;
}

}  // namespace tprof
