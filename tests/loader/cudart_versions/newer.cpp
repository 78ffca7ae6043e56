// Calls each function of newer.h; prints the sum of the arguments that
// arrived.
#include "newer.h"

#include <cstdio>

int main() {
  char data[64] = {};
  void* to[] = {data};
  const void* from[] = {data};
  const size_t sizes[] = {64};
  auto* attributes = reinterpret_cast<cudaMemcpyAttributes*>(1000);
  auto* indices = reinterpret_cast<size_t*>(20'000);
  const auto stream = reinterpret_cast<cudaStream_t>(300'000);
  for (int i = 0; i < 2; ++i) {
    copies(to, from, sizes, 1, attributes, indices, 7, stream);
    prefetch(data, 64, {cudaMemLocationTypeDevice, 3}, 9, stream);
  }
  nine(to, 1 << 20, 2 << 20, from, 4 << 20, 8 << 20, 16 << 20, 32 << 20, 64 << 20);
  std::printf("%llu\n", last_arguments());
}
