// Viewers of a merged trace show this of a call: a name with its size, and a colour for its bucket.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "interpose/format/buckets.h"

namespace tprof::trace_export {

// One of Chrome's reserved names of colours.
std::string_view color_of(Bucket bucket);

// The name of a bucket's calls in lanes of their sums: "AllGather", "H2D".
std::string_view title_of(Bucket bucket);

class CallNames {
 public:
  // "AllGather 32 KiB", or "AllGather" if the size is not known: to be written one after the other.
  struct Name {
    std::string_view what;
    std::string_view size;  // valid until the next name
  };
  Name of(std::string_view function, Bucket bucket, std::optional<std::uint64_t> bytes);

 private:
  struct Known {
    std::uint64_t bytes = 0;
    std::string text;  // empty: none yet
  };
  // A program has few sizes, and writing one takes longer than all else of a line.
  std::array<Known, 64> sizes_;
};

// "32 KiB", "9.54 MiB"; as text::bytes(), without decimals that say nothing.
std::string size_for_name(std::uint64_t bytes);

}  // namespace tprof::trace_export
