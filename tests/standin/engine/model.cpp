#include "engine/model.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace standin {
namespace {

// Empty if it is not set.
std::string_view environment(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? text : "";
}

double number(const char* variable, double otherwise) {
  const std::string_view text = environment(variable);
  return text.empty() ? otherwise : std::atof(text.data());
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return parts;
}

// A misspelt fault would make a test pass for the wrong reason.
[[noreturn]] void reject(const char* variable, std::string_view text) {
  std::fprintf(stderr, "standin: %s: cannot read '%.*s'\n", variable, static_cast<int>(text.size()),
               text.data());
  std::abort();
}

int integer(const char* variable, std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) reject(variable, text);
  return value;
}

enum class Effect { kHang, kHangDevice, kDie };
struct Fault {
  Effect effect;
  int rank;
  std::string_view function;
  int nth;
};

void read_faults(const char* variable, Effect effect, std::vector<Fault>& faults) {
  for (std::string_view item : split(environment(variable), ',')) {
    const auto part = split(item, ':');
    if (part.size() != 3) reject(variable, item);
    faults.push_back({effect, integer(variable, part[0]), part[1], integer(variable, part[2])});
  }
}

const std::vector<Fault>& faults() {
  static const auto& all = *[] {
    auto* list = new std::vector<Fault>;
    read_faults("STANDIN_HANG", Effect::kHang, *list);
    read_faults("STANDIN_HANG_DEVICE", Effect::kHangDevice, *list);
    read_faults("STANDIN_DIE", Effect::kDie, *list);
    return list;
  }();
  return all;
}

double slowness(int rank) {
  struct Slow {
    int rank = -1;
    double factor = 1;
  };
  static const Slow slow = [] {
    const std::string_view text = environment("STANDIN_SLOW_RANK");
    const auto part = split(text, ':');
    if (part.empty()) return Slow{};
    if (part.size() != 2) reject("STANDIN_SLOW_RANK", text);
    return Slow{integer("STANDIN_SLOW_RANK", part[0]), std::atof(std::string(part[1]).c_str())};
  }();
  return rank == slow.rank ? slow.factor : 1;
}

std::chrono::nanoseconds microseconds(double us) {
  return std::chrono::nanoseconds(static_cast<int64_t>(us * 1e3));
}

std::atomic<int> first_rank{-1};

int launcher_rank() {
  static const int rank = static_cast<int>(number("RANK", -1));
  return rank;
}

}  // namespace

int device_count() {
  static const int count = static_cast<int>(number("STANDIN_DEVICES", 8));
  return count;
}

int process_rank() {
  if (launcher_rank() >= 0) return launcher_rank();
  const int rank = first_rank.load();
  return rank < 0 ? 0 : rank;
}

int acting_rank(int comm_rank) {
  return launcher_rank() >= 0 ? launcher_rank() : comm_rank;
}

void set_first_rank(int rank) {
  int none = -1;
  first_rank.compare_exchange_strong(none, rank);
}

std::chrono::nanoseconds transfer_time(size_t bytes, int rank) {
  static const double latency_us = number("STANDIN_LATENCY_US", 0);
  static const double gbps = number("STANDIN_GBPS", 0);
  const double us = latency_us + (gbps > 0 ? static_cast<double>(bytes) / (gbps * 1e3) : 0);
  return microseconds(us * slowness(rank));
}

std::chrono::nanoseconds kernel_time(dim3 grid) {
  const double blocks = static_cast<double>(grid.x) * grid.y * grid.z;
  static const double kernel_us = number("STANDIN_KERNEL_US", 0);
  static const double block_us = number("STANDIN_BLOCK_US", 0);
  return microseconds((kernel_us + blocks * block_us) * slowness(process_rank()));
}

void hold_up_launch() {
  static const auto parts = split(environment("STANDIN_SLOW_LAUNCH"), ':');
  if (parts.empty()) return;
  if (parts.size() != 2) reject("STANDIN_SLOW_LAUNCH", environment("STANDIN_SLOW_LAUNCH"));
  static const int us = integer("STANDIN_SLOW_LAUNCH", parts[0]);
  static const int each = integer("STANDIN_SLOW_LAUNCH", parts[1]);
  static std::atomic<int> launches{0};
  if (++launches % each != 0) return;
  // A short sleep takes 50 us longer than it should.
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
  if (us >= 1000) std::this_thread::sleep_until(until);
  while (std::chrono::steady_clock::now() < until) {
  }
}

std::chrono::nanoseconds spin_time() {
  static const auto time =
      std::chrono::nanoseconds(static_cast<int64_t>(1000 * number("STANDIN_SPIN_US", 0)));
  return time;
}

std::chrono::seconds peer_timeout() {
  static const auto limit =
      std::chrono::seconds(static_cast<int64_t>(number("STANDIN_TIMEOUT_S", 300)));
  return limit;
}

void hang() {
  for (;;) pause();
}

Outcome meet_fault(const char* function, int rank) {
  Outcome outcome;
  if (faults().empty()) return outcome;
  static std::mutex& mutex = *new std::mutex;
  static auto& calls = *new std::map<std::pair<std::string_view, int>, int>;
  int nth = 0;
  {
    const std::lock_guard lock(mutex);
    nth = ++calls[{function, rank}];
  }
  for (const Fault& f : faults()) {
    if (f.rank != rank || f.function != function || f.nth != nth) continue;
    switch (f.effect) {
      case Effect::kHang:
        hang();
      case Effect::kDie:
        kill(getpid(), SIGKILL);
        break;
      case Effect::kHangDevice:
        outcome.hang_device = true;
        break;
    }
  }
  return outcome;
}

}  // namespace standin
