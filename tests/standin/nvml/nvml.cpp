// The part of NVML that readings of devices need. It has two devices whose values follow from their
// numbers, and counters that grow with the clock. It aborts a program that misuses NVML: before it
// is initialized, in a forked child, or after its exit handler.
//
//   STANDIN_NVML_HANG   if set, the call that reads a device's power never returns
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#define EXPORTED extern "C" [[gnu::visibility("default")]]

namespace {

constexpr unsigned kDevices = 2;
constexpr int kInvalid = 2;
constexpr int kNotSupported = 3;

std::atomic<pid_t> g_of{0};
std::atomic<bool> g_over{false};

[[noreturn]] void stop(const char* why) {
  std::fprintf(stderr, "standin: NVML: %s\n", why);
  std::abort();
}
void check() {
  if (g_over) stop("called behind its exit handler");
  if (g_of == 0) stop("not initialized");
  if (g_of != getpid()) stop("called in a forked child");
}

struct Device {
  unsigned number;
} g_device[kDevices] = {{0}, {1}};

unsigned long long nanoseconds() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<unsigned long long>(t.tv_sec) * 1'000'000'000 +
         static_cast<unsigned long long>(t.tv_nsec);
}

struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};
struct Field {
  unsigned id, scope;
  long long timestamp, latency;
  int type, result;
  unsigned long long value;
};
static_assert(sizeof(Field) == 40);

// PCIe counters grow by bytes per microsecond, and NVLink's by KiB per millisecond over all links.
// Only device 0 has NVLink.
int fill(const Device& device, Field& field) {
  const bool linked = field.id == 138 || field.id == 139;
  const bool pcie = field.id == 197 || field.id == 198;
  if (!linked && !pcie) return kInvalid;
  if (linked && (device.number != 0 || field.scope != UINT32_MAX)) return kNotSupported;
  const unsigned long long t = nanoseconds();
  const unsigned long long times = field.id % 2 + 1;  // received and sent amounts differ
  field.type = 3;
  field.value = pcie ? t / 1000 * (device.number + 1) * times : t / 1'000'000 * times;
  return 0;
}

}  // namespace

EXPORTED int nvmlInit_v2() {
  if (g_of.exchange(getpid()) == 0) std::atexit([] { g_over = true; });
  check();
  return 0;
}
EXPORTED int nvmlDeviceGetCount_v2(unsigned* count) {
  check();
  *count = kDevices;
  return 0;
}
EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device** device) {
  check();
  if (index >= kDevices) return kInvalid;
  *device = &g_device[index];
  return 0;
}
EXPORTED int nvmlDeviceGetUtilizationRates(const Device* device, Utilization* to) {
  check();
  *to = {10 * device->number + 7, 10 * device->number + 3};
  return 0;
}
EXPORTED int nvmlDeviceGetMemoryInfo(const Device* device, Memory* to) {
  check();
  to->total = 80ULL << 30;
  to->used = ((device->number + 1ULL) << 30) + 5;
  to->free = to->total - to->used;
  return 0;
}
EXPORTED int nvmlDeviceGetPowerUsage(const Device* device, unsigned* milliwatts) {
  check();
  while (std::getenv("STANDIN_NVML_HANG") != nullptr) pause();
  *milliwatts = 100'000 * (device->number + 1) + 500;
  return 0;
}
EXPORTED int nvmlDeviceGetFieldValues(const Device* device, int count, Field* fields) {
  check();
  for (int i = 0; i < count; ++i) fields[i].result = fill(*device, fields[i]);
  return 0;
}
