// The client stacks loads this library, and calls come through it.
#include <cstddef>

extern "C" void through_plugin(void (*next)(std::size_t), std::size_t count);

namespace {

volatile int g_after = 0;

[[gnu::noinline]] void within_plugin(void (*next)(std::size_t), std::size_t count) {
  next(count);  // line of within_plugin
  g_after = 1;
}

}  // namespace

void through_plugin(void (*next)(std::size_t), std::size_t count) {
  within_plugin(next, count);  // line of through_plugin
  g_after = 2;
}
