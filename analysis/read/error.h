// Errors for input that the tool can't read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tprof::read {

// Becomes the one line on standard error and exit code 2.
class BadInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  BadInput(const std::filesystem::path& file, std::string_view what)
      : std::runtime_error(file.string() + ": " + std::string(what)) {}
  BadInput(const std::filesystem::path& file, std::uint64_t offset, std::string_view what)
      : std::runtime_error(file.string() + ": byte " + std::to_string(offset) + ": " +
                           std::string(what)) {}
};

// Another version wrote the file.
class OtherSchema : public BadInput {
  using BadInput::BadInput;
};

// The file is something else, or was cut before it said what it is.
class NotATrace : public BadInput {
 public:
  NotATrace(const std::filesystem::path& file, bool cut_short, std::string_view what)
      : BadInput(file, what), cut_short_(cut_short) {}
  bool cut_short() const { return cut_short_; }

 private:
  bool cut_short_;
};

// An output can't be written. Unlike BadInput, which may just skip a file, this always ends the
// program.
class CantWrite : public std::runtime_error {
 public:
  CantWrite(const std::filesystem::path& file, std::string_view why)
      : std::runtime_error(file.string() + ": " + std::string(why)) {}
};

// Names the output as the user gave it, says why it was not written, and what to do. `error` is an
// errno.
CantWrite not_written(const std::filesystem::path& given, int error);

}  // namespace tprof::read
