// Makes the NVTX ranges that a file lists, one a line, with words separated by tabs:
//
//   nvtx_attributes FILE
//
//   category DOMAIN NUMBER NAME
//   push|mark|start DOMAIN CATEGORY COLOR TYPE PAYLOAD SIZE VERSION NAME
//   pop DOMAIN
//   end            the range that was started last
//   fork           a child does all that follows, and so does the parent when it has ended
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
#include <vector>

namespace {

using Words = std::vector<std::string>;

// Makes a copy, which begins a session.
void copy() {
  static char bytes[64];
  void* device = nullptr;
  cudaMalloc(&device, sizeof bytes);
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
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = words[8].c_str();
  return event;
}

void name_category(nvtxDomainHandle_t of, const Words& words) {
  const std::uint32_t category = number(words[2]);
  of == nullptr ? nvtxNameCategoryA(category, words[3].c_str())
                : nvtxDomainNameCategoryA(of, category, words[3].c_str());
}

void run(const Words& words) {
  static nvtxRangeId_t last = 0;
  const std::string& what = words[0];
  nvtxDomainHandle_t of = words.size() > 1 ? domain(words[1]) : nullptr;
  if (what == "category") name_category(of, words);
  if (what == "push") {
    const nvtxEventAttributes_t event = event_of(words);
    of == nullptr ? nvtxRangePushEx(&event) : nvtxDomainRangePushEx(of, &event);
  } else if (what == "mark") {
    const nvtxEventAttributes_t event = event_of(words);
    of == nullptr ? nvtxMarkEx(&event) : nvtxDomainMarkEx(of, &event);
  } else if (what == "start") {
    const nvtxEventAttributes_t event = event_of(words);
    last = of == nullptr ? nvtxRangeStartEx(&event) : nvtxDomainRangeStartEx(of, &event);
  } else if (what == "pop") {
    of == nullptr ? nvtxRangePop() : nvtxDomainRangePop(of);
  } else if (what == "end") {
    nvtxRangeEnd(last);
  } else if (what == "fork") {
    const pid_t child = fork();
    if (child == 0) copy();
    if (child > 0) waitpid(child, nullptr, 0);
  } else if (what == "kill") {
    std::raise(SIGKILL);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ifstream script(argv[1]);
  std::vector<Words> all;
  for (std::string line; std::getline(script, line);) {
    Words& words = all.emplace_back();
    std::istringstream in(line);
    for (std::string word; std::getline(in, word, '\t');) words.push_back(word);
    words.resize(9);
  }
  copy();
  for (const Words& words : all) run(words);
  return 0;
}
