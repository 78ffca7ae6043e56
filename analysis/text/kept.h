// Interned values: nearly all ranks of a job have the same names, paths and settings, so the
// program keeps one copy until it ends. This is only for few values, never for anything that grows
// with the length of a run.
#pragma once

#include <fmt/core.h>

#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace tprof::text {

// Returns the interned value equal to `value`, and whether it is new. Thread-safe.
template <typename T, typename Hash, typename Value>
std::pair<const T&, bool> kept_or_new(const Value& value) {
  struct Part {
    std::mutex mutex;
    std::unordered_set<T, Hash, std::equal_to<>> values;
  };
  static std::array<Part, 16>& parts = *new std::array<Part, 16>;  // never freed: valid at exit
  const std::size_t hash = Hash{}(value);
  Part& part = parts[(hash >> 7) % parts.size()];
  const std::scoped_lock lock(part.mutex);
  const auto known = part.values.find(value);
  if (known != part.values.end()) return {*known, false};
  return {*part.values.emplace(value).first, true};
}
template <typename T, typename Hash, typename Value>
const T& kept(const Value& value) {
  return kept_or_new<T, Hash>(value).first;
}

struct HashOfText {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};

// An interned text, which converts to a string.
class Kept {
 public:
  Kept() : text_(none()) {}
  template <std::convertible_to<std::string_view> Text>
  requires(!std::same_as<Text, Kept>) Kept(const Text& text)  // NOLINT(google-explicit-constructor)
      : text_(near(text)) {}

  operator const std::string&() const { return *text_; }  // NOLINT(google-explicit-constructor)
  operator std::string_view() const { return *text_; }    // NOLINT(google-explicit-constructor)
  const std::string& str() const { return *text_; }
  bool empty() const { return text_->empty(); }
  std::size_t size() const { return text_->size(); }

  bool operator==(const Kept& other) const { return text_ == other.text_; }
  auto operator<=>(const Kept& other) const {
    return text_ == other.text_ ? std::strong_ordering::equal : *text_ <=> *other.text_;
  }
  template <std::convertible_to<std::string_view> Text>
  requires(!std::same_as<Text, Kept>) bool operator==(const Text& other) const {
    return *text_ == std::string_view(other);
  }
  template <std::convertible_to<std::string_view> Text>
  requires(!std::same_as<Text, Kept>) friend std::string operator+(const Kept& a, const Text& b) {
    return *a.text_ + std::string(b);
  }
  template <std::convertible_to<std::string_view> Text>
  requires(!std::same_as<Text, Kept>) friend std::string operator+(const Text& a, const Kept& b) {
    return std::string(a) + *b.text_;
  }
  friend std::string operator+(const Kept& a, const Kept& b) { return *a.text_ + *b.text_; }

 private:
  static const std::string* none() {
    static const std::string* const kNone = &kept<std::string, HashOfText>(std::string_view());
    return kNone;
  }

  // Most texts were used by this thread lately, and need no lock.
  static const std::string* near(std::string_view text) {
    thread_local std::array<const std::string*, 64> lately{};
    const std::string*& last = lately[HashOfText{}(text) % lately.size()];
    if (last == nullptr || *last != text) last = &kept<std::string, HashOfText>(text);
    return last;
  }

  const std::string* text_;
};

}  // namespace tprof::text

template <>
struct fmt::formatter<tprof::text::Kept> : fmt::formatter<fmt::string_view> {
  auto format(const tprof::text::Kept& text, fmt::format_context& to) const {
    return fmt::formatter<fmt::string_view>::format(text.str(), to);
  }
};
