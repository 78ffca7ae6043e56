// NVTX: whatever is in the process and has ranges (NCCL, PyTorch, cuBLAS) asks the library that
// NVTX_INJECTION64_PATH names for the functions to tell them to. Taken are NCCL's.
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#include <string_view>

#include "interpose/capture/missed.h"
#include "interpose/session/config.h"
#include "wrapper.h"

namespace {

using tprof::Fn;
using tprof::kFunctionCount;

// What NVTX's users get for a handle is an address in here: of the domain of NCCL or of all others,
// and of a function's place for its name.
constexpr char g_domains[2] = {};
constexpr char g_names[kFunctionCount] = {};
constexpr const char* kNcclDomain = &g_domains[0];

template <typename Handle>
Handle handle_of(const char* place) {
  return reinterpret_cast<Handle>(const_cast<char*>(place));
}
bool is_nccl(nvtxDomainHandle_t domain) {
  return domain == handle_of<nvtxDomainHandle_t>(kNcclDomain);
}

Fn function_of(const nvtxEventAttributes_t* event) {
  if (event == nullptr) return Fn::none;
  if (event->messageType == NVTX_MESSAGE_TYPE_REGISTERED) {
    const auto place = reinterpret_cast<std::uintptr_t>(event->message.registered);
    const std::uintptr_t i = place - reinterpret_cast<std::uintptr_t>(g_names);
    return i < kFunctionCount ? static_cast<Fn>(i) : Fn::none;
  }
  if (event->messageType == NVTX_MESSAGE_TYPE_ASCII && event->message.ascii != nullptr) {
    return tprof::resolve::named(event->message.ascii);
  }
  return Fn::none;
}

nvtxDomainHandle_t create_domain(const char* name) {
  const bool nccl = name != nullptr && std::string_view(name) == "NCCL";
  if (nccl) tprof::missed::watch();
  return handle_of<nvtxDomainHandle_t>(&g_domains[nccl ? 0 : 1]);
}

nvtxStringHandle_t register_string(nvtxDomainHandle_t domain, const char* text) {
  const Fn fn = is_nccl(domain) && text != nullptr ? tprof::resolve::named(text) : Fn::none;
  return handle_of<nvtxStringHandle_t>(&g_names[static_cast<std::size_t>(fn)]);
}

int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  return is_nccl(domain) ? tprof::missed::range_begins(function_of(event))
                         : NVTX_NO_PUSH_POP_TRACKING;
}

int pop(nvtxDomainHandle_t domain) {
  return is_nccl(domain) ? tprof::missed::range_ends() : NVTX_NO_PUSH_POP_TRACKING;
}

template <typename F>
void take(NvtxFunctionTable table, unsigned size, NvtxCallbackIdCore2 id, F* function) {
  if (id < size) *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

// Called by each library in the process that has ranges, at its first one. 0: nothing is wanted.
extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables);
TPROF_EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables) {
  if (tprof::disabled_by_environment() || !tprof::nvtx_by_environment()) return 0;
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(tables(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->struct_size < sizeof *callbacks ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) {
    return 0;
  }
  take(table, size, NVTX_CBID_CORE2_DomainCreateA, create_domain);
  take(table, size, NVTX_CBID_CORE2_DomainRegisterStringA, register_string);
  take(table, size, NVTX_CBID_CORE2_DomainRangePushEx, push);
  take(table, size, NVTX_CBID_CORE2_DomainRangePop, pop);
  return 1;
}
