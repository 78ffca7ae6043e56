// Keeps what NVTX's users register once and then name by handles or numbers: domains, strings and
// categories. It is kept for the whole process, from before its session begins, in bounded memory.
// A known name is found without a lock.
#pragma once

#include <cstdint>
#include <string_view>

#include "interpose/format/ranges.h"

namespace tprof::range_names {

// Returns `text` up to the first 128 bytes, cut between characters.
std::string_view cut(const char* text);
// Returns how many bytes are left of `text` if it is cut so to `most` bytes.
std::size_t cut(std::string_view text, std::size_t most);

// A copy that stays. Equal texts have one copy. intern() returns null if there is no room for more.
struct Name {
  std::uint8_t length;
  char text[1];  // and more
  std::string_view view() const { return {text, length}; }
};
const Name* intern(std::string_view text);
// True if it is a copy that intern() gave.
bool is_name(const void* pointer);

// Returns the number of a domain, or kUnknownDomain if there is no room for more.
std::uint8_t domain(std::string_view name);
std::string_view domain_name(std::uint8_t domain);

// Keeps the first name of a category, if there is room.
void name_category(std::uint8_t domain, std::uint32_t category, std::string_view name);
// Returns the number of the category of that name in `domain`, which gets one if it has none. 0: no
// room.
std::uint32_t category_number(std::uint8_t domain, std::string_view name);
// Gets one category after the other, from 0. False: there are no more.
bool category(std::uint32_t place, RangeCategory& to);

}  // namespace tprof::range_names
