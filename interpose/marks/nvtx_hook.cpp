// The NVTX injection. Every library in the process with ranges (NCCL, PyTorch, cuBLAS, the program)
// gets its NVTX functions from the library in NVTX_INJECTION64_PATH. NCCL's ranges serve to check
// the counts; all others are ranges on the timeline.
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include "interpose/api/functions.h"
#include "interpose/marks/missed_calls.h"
#include "interpose/marks/range_names.h"
#include "interpose/marks/ranges.h"
#include "interpose/real/resolve.h"
#include "interpose/session/config.h"

namespace {

using namespace tprof;

// Reads an NVTX event's category, color and payload. Events of an older or newer NVTX may be
// smaller or larger, but these fields have always had the same offsets.
marks::Attributes attributes_of(const nvtxEventAttributes_t* event) {
  marks::Attributes found;
  if (event == nullptr || event->size < offsetof(nvtxEventAttributes_t, messageType)) return found;
  if (event->category != 0) {
    found.given |= kGivenCategory;
    found.values.category = event->category;
  }
  if (event->colorType == NVTX_COLOR_ARGB) {
    found.given |= kGivenColor;
    found.values.color = event->color;
  }
  const auto payload = [&](RangePayload type, auto value) {
    static_assert(sizeof value == sizeof found.values.payload);
    found.given |= given_payload(type);
    std::memcpy(&found.values.payload, &value, sizeof value);
  };
  const auto& it = event->payload;
  switch (event->payloadType) {
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64:
      payload(RangePayload::positive, it.ullValue);
      break;
    case NVTX_PAYLOAD_TYPE_INT64:
      payload(RangePayload::integer, it.llValue);
      break;
    case NVTX_PAYLOAD_TYPE_DOUBLE:
      payload(RangePayload::real, it.dValue);
      break;
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32:
      payload(RangePayload::positive, std::uint64_t{it.uiValue});
      break;
    case NVTX_PAYLOAD_TYPE_INT32:
      payload(RangePayload::integer, std::int64_t{it.iValue});
      break;
    case NVTX_PAYLOAD_TYPE_FLOAT:
      payload(RangePayload::real, double{it.fValue});
      break;
    default:;
  }
  return found;
}
// Plain text has no attributes.
template <typename Char>
marks::Attributes attributes_of(const Char*) {
  return {};
}

// Handles for NVTX's users are addresses. A domain's handle is its place in here (the first is
// NCCL's: the default domain has no handle). A string's handle is, for NCCL's names, the place of a
// function, and otherwise the interned name.
constexpr char g_domains[kMaxRangeDomains + 1] = {};
constexpr char g_functions[kFunctionCount] = {};
constexpr std::size_t kNccl = 0;
constexpr std::string_view kNcclName = "NCCL";
bool g_all = false;  // all ranges, not only NCCL's

template <typename Handle>
Handle handle_of(const char* place) {
  return reinterpret_cast<Handle>(const_cast<char*>(place));
}
bool is_nccl(nvtxDomainHandle_t domain) {
  return domain == handle_of<nvtxDomainHandle_t>(&g_domains[kNccl]);
}

std::uint8_t number_of(nvtxDomainHandle_t domain) {
  if (domain == nullptr) return kDefaultDomain;
  const std::uintptr_t place =
      reinterpret_cast<std::uintptr_t>(domain) - reinterpret_cast<std::uintptr_t>(g_domains);
  return place < kMaxRangeDomains ? static_cast<std::uint8_t>(place) : kUnknownDomain;
}

// Plain text names no function: NCCL's ranges have attributes.
template <typename Char>
Fn function_of(const Char*) {
  return Fn::none;
}
Fn function_of(const nvtxEventAttributes_t* event) {
  if (event == nullptr) return Fn::none;
  if (event->messageType == NVTX_MESSAGE_TYPE_REGISTERED) {
    const auto place = reinterpret_cast<std::uintptr_t>(event->message.registered);
    const std::uintptr_t i = place - reinterpret_cast<std::uintptr_t>(g_functions);
    return i < kFunctionCount ? static_cast<Fn>(i) : Fn::none;
  }
  if (event->messageType == NVTX_MESSAGE_TYPE_ASCII && event->message.ascii != nullptr) {
    return resolve::named(event->message.ascii);
  }
  return Fn::none;
}

// Returns the message, or an empty one. Wide characters (of Windows programs) are ignored.
std::string_view message(const char* text) {
  return text == nullptr ? std::string_view() : range_names::cut(text);
}
std::string_view message(const wchar_t*) {
  return {};
}
std::string_view message(const nvtxEventAttributes_t* event) {
  if (event == nullptr) return {};
  const auto& it = event->message;
  if (event->messageType == NVTX_MESSAGE_TYPE_ASCII) return message(it.ascii);
  const bool known =
      event->messageType == NVTX_MESSAGE_TYPE_REGISTERED && range_names::is_name(it.registered);
  return known ? reinterpret_cast<const range_names::Name*>(it.registered)->view() : "";
}

nvtxDomainHandle_t create_domain(const char* text) {
  const std::string_view name = message(text);
  if (name == kNcclName) {
    missed::watch();
    return handle_of<nvtxDomainHandle_t>(&g_domains[kNccl]);
  }
  const std::uint8_t number = g_all ? range_names::domain(name) : kUnknownDomain;
  return handle_of<nvtxDomainHandle_t>(
      &g_domains[number == kUnknownDomain ? kMaxRangeDomains : number]);
}

nvtxStringHandle_t register_string(nvtxDomainHandle_t domain, const char* text) {
  if (!is_nccl(domain) && g_all) {
    return reinterpret_cast<nvtxStringHandle_t>(
        const_cast<range_names::Name*>(range_names::intern(message(text))));
  }
  const Fn fn = is_nccl(domain) && text != nullptr ? resolve::named(text) : Fn::none;
  return handle_of<nvtxStringHandle_t>(&g_functions[static_cast<std::size_t>(fn)]);
}

// The default domain's handle is null. Its functions, from NVTX's first version, also take text.
constexpr nvtxDomainHandle_t kNoDomain = nullptr;

// Returns the level of the range only to NCCL. Others get the same result as without a tool.
template <typename E>
int push(nvtxDomainHandle_t domain, E event) {
  if (is_nccl(domain)) return missed::range_begins(function_of(event));
  if (g_all) marks::push(number_of(domain), message(event), attributes_of(event));
  return NVTX_NO_PUSH_POP_TRACKING;
}
int pop(nvtxDomainHandle_t domain) {
  if (is_nccl(domain)) return missed::range_ends();
  if (g_all) marks::pop(number_of(domain));
  return NVTX_NO_PUSH_POP_TRACKING;
}

template <typename E>
nvtxRangeId_t start(nvtxDomainHandle_t domain, E event) {
  if (is_nccl(domain)) return 0;
  return marks::start(number_of(domain), message(event), attributes_of(event));
}
void end(nvtxDomainHandle_t, nvtxRangeId_t range) {
  marks::end(range);
}
template <typename E>
void mark(nvtxDomainHandle_t domain, E event) {
  if (!is_nccl(domain)) marks::mark(number_of(domain), message(event), attributes_of(event));
}

void name_category(nvtxDomainHandle_t domain, std::uint32_t category, const char* name) {
  if (!is_nccl(domain)) range_names::name_category(number_of(domain), category, message(name));
}

struct Callbacks {
  NvtxFunctionTable functions = nullptr;
  unsigned size = 0;

  Callbacks(const NvtxExportTableCallbacks& callbacks, NvtxCallbackModule module) {
    if (callbacks.GetModuleFunctionTable(module, &functions, &size) == 0) size = 0;
  }
  // `Type` is NVTX's declaration, so a changed one is a compile error.
  template <typename Type>
  void set(unsigned id, Type function) {
    if (id < size) *functions[id] = reinterpret_cast<NvtxFunctionPointer>(function);
  }
};

using Event = const nvtxEventAttributes_t*;

void register_core(Callbacks table) {
  const auto mark_plain = [](auto event) { mark(kNoDomain, event); };
  const auto start_plain = [](auto event) { return start(kNoDomain, event); };
  const auto push_plain = [](auto event) { return push(kNoDomain, event); };
  table.set<nvtxMarkEx_impl_fntype>(NVTX_CBID_CORE_MarkEx, mark_plain);
  table.set<nvtxMarkA_impl_fntype>(NVTX_CBID_CORE_MarkA, mark_plain);
  table.set<nvtxMarkW_impl_fntype>(NVTX_CBID_CORE_MarkW, mark_plain);
  table.set<nvtxRangeStartEx_impl_fntype>(NVTX_CBID_CORE_RangeStartEx, start_plain);
  table.set<nvtxRangeStartA_impl_fntype>(NVTX_CBID_CORE_RangeStartA, start_plain);
  table.set<nvtxRangeStartW_impl_fntype>(NVTX_CBID_CORE_RangeStartW, start_plain);
  table.set<nvtxRangeEnd_impl_fntype>(NVTX_CBID_CORE_RangeEnd,
                                      [](nvtxRangeId_t range) { end(kNoDomain, range); });
  table.set<nvtxRangePushEx_impl_fntype>(NVTX_CBID_CORE_RangePushEx, push_plain);
  table.set<nvtxRangePushA_impl_fntype>(NVTX_CBID_CORE_RangePushA, push_plain);
  table.set<nvtxRangePushW_impl_fntype>(NVTX_CBID_CORE_RangePushW, push_plain);
  table.set<nvtxRangePop_impl_fntype>(NVTX_CBID_CORE_RangePop, [] { return pop(kNoDomain); });
  table.set<nvtxNameCategoryA_impl_fntype>(
      NVTX_CBID_CORE_NameCategoryA,
      [](std::uint32_t category, const char* name) { name_category(kNoDomain, category, name); });
}

void register_domains(Callbacks table, bool all) {
  table.set<nvtxDomainCreateA_impl_fntype>(NVTX_CBID_CORE2_DomainCreateA, create_domain);
  table.set<nvtxDomainRegisterStringA_impl_fntype>(NVTX_CBID_CORE2_DomainRegisterStringA,
                                                   register_string);
  table.set<nvtxDomainRangePushEx_impl_fntype>(NVTX_CBID_CORE2_DomainRangePushEx, push<Event>);
  table.set<nvtxDomainRangePop_impl_fntype>(NVTX_CBID_CORE2_DomainRangePop, pop);
  if (!all) return;
  table.set<nvtxDomainRangeStartEx_impl_fntype>(NVTX_CBID_CORE2_DomainRangeStartEx, start<Event>);
  table.set<nvtxDomainRangeEnd_impl_fntype>(NVTX_CBID_CORE2_DomainRangeEnd, end);
  table.set<nvtxDomainMarkEx_impl_fntype>(NVTX_CBID_CORE2_DomainMarkEx, mark<Event>);
  table.set<nvtxDomainNameCategoryA_impl_fntype>(NVTX_CBID_CORE2_DomainNameCategoryA,
                                                 name_category);
}

}  // namespace

// Called by each library with ranges, at its first range. 0: nothing is wanted.
extern "C" [[gnu::visibility("default")]] int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t tables);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables) {
  const NvtxRanges wanted = nvtx_by_environment();
  if (disabled_by_environment() || wanted == NvtxRanges::off) return 0;
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(tables(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr || callbacks->struct_size < sizeof *callbacks) return 0;
  const Callbacks domains(*callbacks, NVTX_CB_MODULE_CORE2);
  if (domains.size == 0) return 0;
  g_all = wanted == NvtxRanges::all;
  register_domains(domains, g_all);
  if (g_all) register_core(Callbacks(*callbacks, NVTX_CB_MODULE_CORE));
  return 1;
}
