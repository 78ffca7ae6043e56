// Packs values into bytes for another process of the team, and unpacks them there. The same
// function does both, so that they always match.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/kept.h"

namespace tprof::team {

// Enumerates the fields of a plain aggregate without naming them, so that a new field can't be
// forgotten in packing.

// Initialises a field of any type except the aggregate's own, which would be a copy.
template <typename Whole>
struct AnyField {
  std::size_t ignored = 0;
  template <typename T>
  requires(!std::is_same_v<T, Whole>) operator T&()
      const&& {    // NOLINT(google-explicit-constructor)
    std::abort();  // only its type counts
  }
};

template <typename T, std::size_t... I>
constexpr bool takes(std::index_sequence<I...> /*fields*/) {
  return requires {
    T{AnyField<T>{I}...};
  };
}

inline constexpr std::size_t kMostFields = 32;

// An aggregate takes at most as many values in braces as it has fields.
template <typename T, std::size_t N = kMostFields>
constexpr std::size_t fields_of() {
  if constexpr (N == 0) {
    return 0;
  } else if constexpr (takes<T>(std::make_index_sequence<N>{})) {
    return N;
  } else {
    return fields_of<T, N - 1>();
  }
}

// Calls f(fields...). Only structured bindings reach fields by position, so each number of fields
// has to be written out.
template <typename T, typename F>
void with_fields(T& of, F&& f) {
  constexpr std::size_t kFields = fields_of<T>();
  static_assert(kFields != 0, "it has too many fields, or one that nothing converts to");
  // clang-format off
#define TPROF_FIELDS(n, ...)                \
  if constexpr (kFields == n) {             \
    auto& [__VA_ARGS__] = of;               \
    f(__VA_ARGS__);                         \
  }
  TPROF_FIELDS(1, a)
  TPROF_FIELDS(2, a, b)
  TPROF_FIELDS(3, a, b, c)
  TPROF_FIELDS(4, a, b, c, d)
  TPROF_FIELDS(5, a, b, c, d, e)
  TPROF_FIELDS(6, a, b, c, d, e, g)
  TPROF_FIELDS(7, a, b, c, d, e, g, h)
  TPROF_FIELDS(8, a, b, c, d, e, g, h, i)
  TPROF_FIELDS(9, a, b, c, d, e, g, h, i, j)
  TPROF_FIELDS(10, a, b, c, d, e, g, h, i, j, k)
  TPROF_FIELDS(11, a, b, c, d, e, g, h, i, j, k, l)
  TPROF_FIELDS(12, a, b, c, d, e, g, h, i, j, k, l, m)
  TPROF_FIELDS(13, a, b, c, d, e, g, h, i, j, k, l, m, n)
  TPROF_FIELDS(14, a, b, c, d, e, g, h, i, j, k, l, m, n, o)
  TPROF_FIELDS(15, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p)
  TPROF_FIELDS(16, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q)
  TPROF_FIELDS(17, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r)
  TPROF_FIELDS(18, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r, s)
  TPROF_FIELDS(19, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r, s, t)
  TPROF_FIELDS(20, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u)
  TPROF_FIELDS(21, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v)
  TPROF_FIELDS(22, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w)
  TPROF_FIELDS(23, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x)
  TPROF_FIELDS(24, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y)
  TPROF_FIELDS(25, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z)
  TPROF_FIELDS(26, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2)
  TPROF_FIELDS(27, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2)
  TPROF_FIELDS(28, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2)
#undef TPROF_FIELDS
  // clang-format on
  static_assert(kFields <= 28, "write out one more");
}

// Takes numbers, texts, the containers below, plain aggregates of these, and types whose `void
// state(Archive&)` passes on their parts. The bytes are for another process of the same program.
class Archive {
 public:
  Archive() = default;  // packs
  explicit Archive(std::string_view packed) : packs_(false), left_(packed) {}

  bool packs() const { return packs_; }
  std::string take() { return std::exchange(bytes_, {}); }  // what was packed
  bool empty() const { return left_.empty(); }              // everything is unpacked

  template <typename... T>
  void operator()(T&... values) {
    (one(values), ...);
  }

  // A handle of a shared value (text/kept.h), which is packed once.
  template <typename Handle, typename Value>
  void kept(Handle& handle, const Value& value) {
    std::uint64_t n = 0;
    if (packs_) {
      const auto [known, fresh] = numbers_.try_emplace(&value, numbers_.size());
      one(n = known->second);
      if (fresh) one(const_cast<Value&>(value));  // NOLINT: it is only read
      return;
    }
    one(n);
    if (n > handles_.size()) cut();
    if (n == handles_.size()) {
      handles_.emplace_back();  // its parts may have such handles too
      Value fresh{};
      one(fresh);
      handles_[n] = std::make_shared<Handle>(fresh);
    }
    handle = *static_cast<const Handle*>(handles_[n].get());
  }

 private:
  [[noreturn]] static void cut() {
    throw std::runtime_error("a message of another process of the team is cut or damaged");
  }

  std::string_view next(std::uint64_t n) {
    if (n > left_.size()) cut();
    const std::string_view part = left_.substr(0, n);
    left_.remove_prefix(n);
    return part;
  }

  // Seven bits a byte: most numbers are small.
  void number(std::uint64_t& n) {
    if (packs_) {
      std::uint64_t rest = n;
      for (; rest >= 0x80; rest >>= 7) bytes_ += static_cast<char>(rest | 0x80);
      bytes_ += static_cast<char>(rest);
      return;
    }
    n = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(next(1)[0]);
      if (shift > 63) cut();
      n |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return;
    }
  }

  // Each element takes at least a byte, which bounds a damaged length.
  std::uint64_t length(std::uint64_t n) {
    number(n);
    if (!packs_ && n > left_.size()) cut();
    return n;
  }

  template <typename T>
  void integer(T& value) {
    // The sign is the last bit, so that small negative numbers are short too.
    const auto wide = static_cast<std::int64_t>(value);
    std::uint64_t n = std::is_signed_v<T>
                          ? static_cast<std::uint64_t>(wide) << 1 ^ (wide < 0 ? UINT64_MAX : 0)
                          : static_cast<std::uint64_t>(value);
    number(n);
    if (packs_) return;
    value = static_cast<T>(std::is_signed_v<T> ? n >> 1 ^ (~(n & 1) + 1) : n);
  }

  template <typename T>
  void raw(T& value) {
    char* bytes = reinterpret_cast<char*>(&value);  // NOLINT: its bytes
    if (packs_) {
      bytes_.append(bytes, sizeof(T));
    } else {
      next(sizeof(T)).copy(bytes, sizeof(T));
    }
  }

  void one(std::string& text) {
    const std::uint64_t n = length(text.size());
    packs_ ? void(bytes_ += text) : void(text = next(n));
  }
  void one(std::filesystem::path& path) {
    std::string text = path.string();
    one(text);
    if (!packs_) path = text;
  }
  void one(text::Kept& text) { kept(text, text.str()); }

  template <typename T>
  void one(std::vector<T>& all) {
    const std::uint64_t n = length(all.size());
    if (packs_) {
      for (T& value : all) one(value);
      return;
    }
    all.clear();
    for (std::uint64_t i = 0; i < n; ++i) one(all.emplace_back());
  }
  template <typename T>
  void one(std::optional<T>& value) {
    bool there = value.has_value();
    one(there);
    if (!packs_) there ? void(value.emplace()) : value.reset();
    if (there) one(*value);
  }
  template <typename K, typename V, typename C>
  void one(std::map<K, V, C>& all) {
    const std::uint64_t n = length(all.size());
    if (packs_) {
      for (auto& [key, value] : all) operator()(const_cast<K&>(key), value);  // NOLINT: only read
      return;
    }
    all.clear();
    for (std::uint64_t i = 0; i < n; ++i) {
      K key{};
      one(key);
      one(all.emplace_hint(all.end(), std::move(key), V{})->second);
    }
  }
  template <typename T>
  void one(T& value) {
    if constexpr (requires { value.state(*this); }) {
      value.state(*this);
    } else if constexpr (std::is_enum_v<T>) {
      auto number = static_cast<std::underlying_type_t<T>>(value);
      one(number);
      if (!packs_) value = static_cast<T>(number);
    } else if constexpr (std::is_integral_v<T>) {
      integer(value);
    } else if constexpr (std::is_floating_point_v<T>) {
      raw(value);
    } else if constexpr (std::is_pointer_v<T>) {
      // Pointers are not packed: their owner sets them.
    } else {
      static_assert(std::is_aggregate_v<T>, "has no state(Archive&)");
      with_fields(value, [&](auto&... fields) { operator()(fields...); });
    }
  }

  bool packs_ = true;
  std::string bytes_;
  std::string_view left_;
  std::unordered_map<const void*, std::uint64_t> numbers_;  // of shared values, by address
  std::vector<std::shared_ptr<const void>> handles_;        // by number
};

// Packs all values into one string, and back.
template <typename... T>
std::string packed(const T&... values) {
  Archive pack;
  pack(const_cast<T&>(values)...);  // NOLINT: they are only read
  return pack.take();
}
template <typename... T>
void unpack(std::string_view text, T&... values) {
  Archive from(text);
  from(values...);
}

}  // namespace tprof::team
