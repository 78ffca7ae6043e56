// What a Python interpreter would import, found without importing it.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace tprof::doctor {

struct Python {
  std::string version;                                    // empty: it did not answer
  std::map<std::string, std::filesystem::path> packages;  // name -> folder
};

bool is_python(const std::filesystem::path& program);

// Of the packages that move data: torch, cupy, vllm, jax, ...
Python ask_python(const std::filesystem::path& interpreter);

}  // namespace tprof::doctor
