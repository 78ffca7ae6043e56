// Which libraries a program or library gets: its own dynamic loader is asked, which knows RPATH,
// RUNPATH, LD_LIBRARY_PATH and its cache better than we do. Nothing of the program runs.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tprof::doctor {

struct Closure {
  std::map<std::string, std::string> libraries;  // name -> path; empty path: not found
  std::vector<std::string> complaints;           // lines that are no libraries
};

Closure libraries_of(const std::filesystem::path& object, const std::string& loader,
                     const std::string& preload);

}  // namespace tprof::doctor
