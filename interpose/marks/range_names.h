// Keeps what NVTX's users register once and then refer to by handles or numbers: domains, strings
// and categories. Kept for the life of the process, even from before the session, in bounded
// memory. Known names are found without a lock.
#pragma once

#include <cstdint>
#include <string_view>

#include "interpose/format/ranges.h"

namespace tprof::range_names {

// Returns the first 128 bytes of `text`, cut between characters.
std::string_view cut(const char* text);
// Returns the length of `text` if cut to `most` bytes like this.
std::size_t cut(std::string_view text, std::size_t most);

// A permanent copy, one for equal texts. intern() returns null if there is no room.
struct Name {
  std::uint8_t length;
  char text[1];  // and more
  std::string_view view() const { return {text, length}; }
};
const Name* intern(std::string_view text);
// True if intern() returned it.
bool is_name(const void* pointer);

// Returns the number of a domain, or kUnknownDomain if there is no room.
std::uint8_t domain(std::string_view name);
std::string_view domain_name(std::uint8_t domain);

// Keeps the first name of a category, if there is room.
void name_category(std::uint8_t domain, std::uint32_t category, std::string_view name);
// Returns the number of the category with that name in `domain`, and assigns one if needed. 0: no
// room.
std::uint32_t category_number(std::uint8_t domain, std::string_view name);
// Gets the category at a place, from 0. Returns false if there are no more.
bool category(std::uint32_t place, RangeCategory& to);

}  // namespace tprof::range_names
