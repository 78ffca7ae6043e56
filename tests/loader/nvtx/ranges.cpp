// A program with NVTX ranges of every kind, around calls of CUDA.
//
//   nvtx_ranges SCENARIO
//
// Prints, where the scenario counts them, how often it made a range of each name.
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

char g_bytes[64];

// Makes a copy, which begins a session.
void copy() {
  static void* device = nullptr;
  if (device == nullptr) cudaMalloc(&device, sizeof g_bytes);
  cudaMemcpy(device, g_bytes, sizeof g_bytes, cudaMemcpyHostToDevice);
}

struct Event : nvtxEventAttributes_t {
  explicit Event(const char* text) : nvtxEventAttributes_t{} {
    version = NVTX_VERSION;
    size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    messageType = NVTX_MESSAGE_TYPE_ASCII;
    message.ascii = text;
  }
  explicit Event(nvtxStringHandle_t text) : Event("") {
    messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    message.registered = text;
  }
};

// How many ranges of each name there were by the program's own count, which it prints at its end.
std::map<std::string, int> g_made;
std::mutex g_lock;

void made(const std::string& name) {
  const std::lock_guard guard(g_lock);
  ++g_made[name];
}

void tell() {
  std::printf("{");
  for (const auto& [name, n] : g_made) {
    std::printf("%s\"%s\":%d", name == g_made.begin()->first ? "" : ",", name.c_str(), n);
  }
  std::printf("}\n");
}

void nested() {
  copy();
  nvtxRangePushA("outer");
  for (int i = 0; i < 3; ++i) {
    nvtxRangePushA(("inner " + std::to_string(i)).c_str());
    copy();
    nvtxRangePop();
  }
  nvtxRangePop();
}

// Calls every function of NVTX's that begins or ends a range or makes a mark.
void every_kind() {
  copy();
  nvtxDomainHandle_t python = nvtxDomainCreateA("Python");
  nvtxStringHandle_t name = nvtxDomainRegisterStringA(python, "registered");
  const Event ascii("of an event");
  const Event registered(name);
  nvtxRangePushEx(&ascii);
  nvtxRangePop();
  nvtxRangePushW(L"wide");  // its name is not kept
  nvtxRangePop();
  nvtxDomainRangePushEx(python, &registered);
  nvtxDomainRangePop(python);
  nvtxMarkA("mark");
  nvtxMarkEx(&ascii);
  nvtxMarkW(L"wide mark");
  nvtxDomainMarkEx(python, &registered);
  nvtxRangeEnd(nvtxRangeStartA("started"));
  nvtxRangeEnd(nvtxRangeStartW(L"started wide"));
  nvtxRangeEnd(nvtxRangeStartEx(&ascii));
  nvtxDomainRangeEnd(python, nvtxDomainRangeStartEx(python, &registered));
  const nvtxEventAttributes_t nothing{};
  nvtxRangePushEx(&nothing);
  nvtxRangePop();
}

// Ranges begin on one thread and end on another, end in the order in which they began, and are
// pushed in two domains and popped crosswise.
void overlapping() {
  copy();
  const nvtxRangeId_t first = nvtxRangeStartA("first");
  const nvtxRangeId_t second = nvtxRangeStartA("second");
  std::thread([&] { nvtxRangeEnd(first); }).join();
  nvtxRangeEnd(second);
  nvtxRangeEnd(second);  // no longer one
  nvtxDomainHandle_t a = nvtxDomainCreateA("a");
  nvtxDomainHandle_t b = nvtxDomainCreateA("b");
  const Event below("below");
  const Event above("above");
  nvtxDomainRangePushEx(a, &below);
  nvtxDomainRangePushEx(b, &above);
  nvtxDomainRangePop(a);
  nvtxDomainRangePop(b);
  nvtxDomainRangePop(b);  // nothing is open there
}

void any_name() {
  copy();
  const std::string texts[] = {"",
                               "tprof_footer",
                               "process_name",
                               "\"quoted\\\"\n\x01",
                               "not utf-8: \xff\xc3 end",
                               std::string(5000, 'x'),
                               std::string(127, 'y') + "\u00e9 is cut",
                               std::string(126, 'z') + "\u00e9",
                               std::string(33, 'v')};
  for (const std::string& text : texts) {
    nvtxRangePushA(text.c_str());
    nvtxRangePop();
  }
}

void threads() {
  copy();
  std::vector<std::thread> all(4);
  for (int t = 0; t < 4; ++t) {
    all[static_cast<std::size_t>(t)] = std::thread([t] {
      for (int i = 0; i < 250; ++i) {
        const std::string name = "thread " + std::to_string(t) + " step " + std::to_string(i);
        nvtxRangePushA(name.c_str());
        nvtxRangePop();
        made(name);
      }
    });
  }
  for (std::thread& t : all) t.join();
}

// Ranges come as fast as they can, between calls.
void flood() {
  copy();
  for (int i = 0; i < 10000; ++i) {
    const std::string name = "step " + std::to_string(i);
    nvtxRangePushA(name.c_str());
    if (i % 100 == 0) copy();
    nvtxRangePop();
    made(name);
  }
}

void killed() {
  copy();
  nvtxRangePushA("step 1");
  nvtxRangePushA("forward");
  nvtxRangePop();
  const nvtxRangeId_t loading = nvtxRangeStartA("loading");
  nvtxRangeEnd(nvtxRangeStartA("loaded"));
  nvtxRangePushA("layer 3");
  static_cast<void>(loading);
  std::raise(SIGKILL);
}

void forked() {
  copy();
  nvtxRangePushA("parent");
  const nvtxRangeId_t started = nvtxRangeStartA("parent's");
  const pid_t child = fork();
  if (child == 0) {
    copy();
    nvtxRangePushA("child");
    nvtxRangePop();
    nvtxRangePop();
    nvtxRangeEnd(started);
    nvtxRangePushA("child too");
    nvtxRangePop();
    std::exit(0);
  }
  waitpid(child, nullptr, 0);
  nvtxRangeEnd(started);
  nvtxRangePop();
}

void before() {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("early");
  const Event inner("inner");
  const Event crossing("popped from under another");
  nvtxRangePushA("over before");
  nvtxRangePop();
  nvtxRangePushA("outer");
  nvtxRangePushEx(&crossing);
  nvtxDomainRangePushEx(domain, &inner);
  nvtxRangePop();
  copy();
  nvtxDomainRangePop(domain);
  nvtxRangePushA("next");
  nvtxRangePop();
  nvtxRangePop();
}

void no_calls() {
  for (int i = 0; i < 100; ++i) {
    nvtxRangePushA("alone");
    nvtxMarkA("alone");
    nvtxRangeEnd(nvtxRangeStartA("alone"));
    nvtxRangePop();
  }
}

// Opens more at a time than there is room for: 32 in each other, 64 started.
void too_many() {
  copy();
  for (int i = 0; i < 40; ++i) nvtxRangePushA("deep");
  for (int i = 0; i < 40; ++i) nvtxRangePop();
  std::vector<nvtxRangeId_t> started(70);
  for (nvtxRangeId_t& range : started) range = nvtxRangeStartA("started");
  for (const nvtxRangeId_t range : started) nvtxRangeEnd(range);
}

// Registers a name that was never seen before, again and again.
void new_strings() {
  copy();
  nvtxDomainHandle_t domain = nvtxDomainCreateA("many");
  for (int i = 0; i < 30000; ++i) {
    nvtxDomainRegisterStringA(domain, ("name " + std::to_string(i)).c_str());
  }
  for (int i = 0; i < 100; ++i) nvtxDomainCreateA(("domain " + std::to_string(i)).c_str());
  for (const char* text : {"name 0", "one too many"}) {
    const Event event(nvtxDomainRegisterStringA(domain, text));
    nvtxDomainRangePushEx(domain, &event);
    nvtxDomainRangePop(domain);
  }
  const Event event("in no domain");
  nvtxDomainHandle_t unknown = nvtxDomainCreateA("one too many");
  nvtxDomainRangePushEx(unknown, &event);
  nvtxDomainRangePop(unknown);
}

struct Scenario {
  const char* name;
  void (*run)();
};
constexpr Scenario kScenarios[] = {
    {"nested", nested},     {"every_kind", every_kind}, {"overlapping", overlapping},
    {"any_name", any_name}, {"threads", threads},       {"flood", flood},
    {"killed", killed},     {"forked", forked},         {"before", before},
    {"no_calls", no_calls}, {"too_many", too_many},     {"new_strings", new_strings}};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (const Scenario& scenario : kScenarios) {
    if (std::strcmp(scenario.name, argv[1]) != 0) continue;
    scenario.run();
    tell();
    return 0;
  }
  return 2;
}
