// Does what a file says with NVTX, around calls of CUDA. Its lines end with a NUL, and have words
// separated by tabs:
//
//   nvtx_script FILE
//
//   copy           the first one begins a session
//   category DOMAIN NUMBER NAME
//   push|mark|start DOMAIN CATEGORY COLOR TYPE PAYLOAD SIZE VERSION NAME
//   pushA|markA|startA NAME             by the function that takes a name alone
//   pushW|markW|startW NAME             its characters are wide
//   pushR|markR|startR DOMAIN NAME      the name was registered
//   register DOMAIN NUMBER              so many names: name 0, name 1, ...
//   pop DOMAIN
//   end            the range that was started last
//   end N [beside] the N-th that was started, counted from 0; on another thread
//   threads N M    each of N threads has M ranges: thread 0 step 0, ...
//   fork           a child does all that follows, and so does the parent when it has ended
//   fork N         it does the next N lines, and the parent all that follow
//   kill
//
// DOMAIN "" is the default domain, and COLOR "" is none. TYPE is a number of nvtxPayloadType_t.
// SIZE is the size that the event claims; "" is its real one. CATEGORY and COLOR are of base 16.
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using Words = std::vector<std::string>;

void copy() {
  static char bytes[64];
  static void* device = nullptr;
  if (device == nullptr) cudaMalloc(&device, sizeof bytes);
  cudaMemcpy(device, bytes, sizeof bytes, cudaMemcpyHostToDevice);
}

nvtxDomainHandle_t domain(const std::string& name) {
  static std::map<std::string, nvtxDomainHandle_t> all;
  if (name.empty()) return nullptr;
  const auto [at, is_new] = all.try_emplace(name);
  if (is_new) at->second = nvtxDomainCreateA(name.c_str());
  return at->second;
}

std::uint32_t number(const std::string& text) {
  return static_cast<std::uint32_t>(std::stoul(text, nullptr, 16));
}

void set_payload(nvtxEventAttributes_t& event, int type, const std::string& value) {
  event.payloadType = type;
  auto& to = event.payload;
  switch (type) {
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64:
      to.ullValue = std::stoull(value);
      break;
    case NVTX_PAYLOAD_TYPE_INT64:
      to.llValue = std::stoll(value);
      break;
    case NVTX_PAYLOAD_TYPE_DOUBLE:
      to.dValue = std::strtod(value.c_str(), nullptr);
      break;
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32:
      to.uiValue = static_cast<std::uint32_t>(std::stoul(value));
      break;
    case NVTX_PAYLOAD_TYPE_INT32:
      to.iValue = std::stoi(value);
      break;
    case NVTX_PAYLOAD_TYPE_FLOAT:
      to.fValue = std::strtof(value.c_str(), nullptr);
      break;
    default:
      to.ullValue = 99;
  }
}

nvtxEventAttributes_t event_of(const Words& words) {
  nvtxEventAttributes_t event{};
  event.size = words[6].empty() ? NVTX_EVENT_ATTRIB_STRUCT_SIZE
                                : static_cast<std::uint16_t>(std::stoi(words[6]));
  event.version = static_cast<std::uint16_t>(std::stoi(words[7]));
  event.category = number(words[2]);
  event.colorType = words[3].empty() ? NVTX_COLOR_UNKNOWN : NVTX_COLOR_ARGB;
  event.color = words[3].empty() ? 0x123456 : number(words[3]);
  set_payload(event, std::stoi(words[4]), words[5]);
  if (words[8].empty()) return event;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = words[8].c_str();
  return event;
}

void name_category(nvtxDomainHandle_t of, const Words& words) {
  const std::uint32_t category = number(words[2]);
  of == nullptr ? nvtxNameCategoryA(category, words[3].c_str())
                : nvtxDomainNameCategoryA(of, category, words[3].c_str());
}

nvtxEventAttributes_t registered(nvtxDomainHandle_t of, const std::string& name) {
  nvtxEventAttributes_t event{};
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.version = NVTX_VERSION;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(of, name.c_str());
  return event;
}

void on_threads(int threads, int ranges) {
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([t, ranges] {
      for (int i = 0; i < ranges; ++i) {
        nvtxRangePushA(("thread " + std::to_string(t) + " step " + std::to_string(i)).c_str());
        nvtxRangePop();
      }
    });
  }
  for (std::thread& t : all) t.join();
}

std::vector<nvtxRangeId_t> started;

void push(nvtxDomainHandle_t of, const nvtxEventAttributes_t& event) {
  of == nullptr ? nvtxRangePushEx(&event) : nvtxDomainRangePushEx(of, &event);
}
void mark(nvtxDomainHandle_t of, const nvtxEventAttributes_t& event) {
  of == nullptr ? nvtxMarkEx(&event) : nvtxDomainMarkEx(of, &event);
}
void start(nvtxDomainHandle_t of, const nvtxEventAttributes_t& event) {
  started.push_back(of == nullptr ? nvtxRangeStartEx(&event) : nvtxDomainRangeStartEx(of, &event));
}

using Does = void (*)(const Words&);
const std::map<std::string, Does> kDoes = {
    {"copy", [](const Words&) { copy(); }},
    {"category", [](const Words& w) { name_category(domain(w[1]), w); }},
    {"push", [](const Words& w) { push(domain(w[1]), event_of(w)); }},
    {"mark", [](const Words& w) { mark(domain(w[1]), event_of(w)); }},
    {"start", [](const Words& w) { start(domain(w[1]), event_of(w)); }},
    {"pushA", [](const Words& w) { nvtxRangePushA(w[1].c_str()); }},
    {"markA", [](const Words& w) { nvtxMarkA(w[1].c_str()); }},
    {"startA", [](const Words& w) { started.push_back(nvtxRangeStartA(w[1].c_str())); }},
    {"pushW", [](const Words&) { nvtxRangePushW(L"wide"); }},
    {"markW", [](const Words&) { nvtxMarkW(L"wide"); }},
    {"startW", [](const Words&) { started.push_back(nvtxRangeStartW(L"wide")); }},
    {"pushR", [](const Words& w) { push(domain(w[1]), registered(domain(w[1]), w[2])); }},
    {"markR", [](const Words& w) { mark(domain(w[1]), registered(domain(w[1]), w[2])); }},
    {"startR", [](const Words& w) { start(domain(w[1]), registered(domain(w[1]), w[2])); }},
    {"register",
     [](const Words& w) {
       for (int i = 0; i < std::stoi(w[2]); ++i)
         registered(domain(w[1]), "name " + std::to_string(i));
     }},
    {"pop",
     [](const Words& w) { w[1].empty() ? nvtxRangePop() : nvtxDomainRangePop(domain(w[1])); }},
    {"end",
     [](const Words& w) {
       const nvtxRangeId_t range = w[1].empty() ? started.back() : started[std::stoul(w[1])];
       if (w[2].empty()) return nvtxRangeEnd(range);
       std::thread([range] { nvtxRangeEnd(range); }).join();
     }},
    {"threads", [](const Words& w) { on_threads(std::stoi(w[1]), std::stoi(w[2])); }},
    {"kill", [](const Words&) { std::raise(SIGKILL); }},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ifstream script(argv[1]);
  std::vector<Words> all;
  for (std::string line; std::getline(script, line, '\0');) {
    Words& words = all.emplace_back();
    std::istringstream in(line);
    for (std::string word; std::getline(in, word, '\t');) words.push_back(word);
    words.resize(9);
  }
  for (std::size_t at = 0, end = all.size(); at < end; ++at) {
    if (all[at][0] != "fork") {
      kDoes.at(all[at][0])(all[at]);
      continue;
    }
    const std::size_t lines = all[at][1].empty() ? 0 : std::stoul(all[at][1]);
    const pid_t child = fork();
    if (child == 0) {
      copy();
      if (lines != 0) end = at + 1 + lines;
    } else {
      waitpid(child, nullptr, 0);
      at += lines;
    }
  }
  return 0;
}
