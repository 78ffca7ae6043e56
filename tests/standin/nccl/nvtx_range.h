// NCCL reports every call by an NVTX range in its domain (nccl/src/include/nvtx.h). It is the only
// sign of a call that bypasses all hooks.
#pragma once

#include <nvtx3/nvToolsExt.h>

class [[nodiscard]] NvtxRange {
 public:
  explicit NvtxRange(const char* function) {
    nvtxEventAttributes_t event{};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = nvtxDomainRegisterStringA(domain(), function);
    nvtxDomainRangePushEx(domain(), &event);
  }
  ~NvtxRange() { nvtxDomainRangePop(domain()); }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

 private:
  static nvtxDomainHandle_t domain() {
    static nvtxDomainRegistration_st* const own = nvtxDomainCreateA("NCCL");
    return own;
  }
};
