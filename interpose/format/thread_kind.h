// What a thread is for, as its name tells: the ledger of a process is kept by thread, so it can be
// split by that for nothing.
#pragma once

#include <cstdint>
#include <string_view>

namespace tprof {

// autograd: PyTorch's, on which the backward pass of a device runs. mixed: many threads' calls.
enum class ThreadKind : std::uint8_t { other, autograd, mixed };

inline constexpr std::string_view kAutogradThread = "autograd";  // the word in lines

// `name`: as the kernel has it. PyTorch names them pt_autograd_<device>.
constexpr ThreadKind thread_kind(std::string_view name) {
  return name.starts_with("pt_autograd_") ? ThreadKind::autograd : ThreadKind::other;
}

}  // namespace tprof
