// The fields of a plain aggregate, one after the other, without naming them: a field that is added
// to a struct can't be forgotten where the struct is packed.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <type_traits>
#include <utility>

namespace tprof::team {

// Initialises a field of any type but the aggregate's own, which would be its copy.
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

// An aggregate takes as many values in braces as it has fields, and no more.
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

// Calls f(fields...). Only structured bindings reach fields by their place, and each number of them
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

}  // namespace tprof::team
