// Reads what an NVTX event has besides its message: category, colour and payload.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "interpose/marks/ranges.h"

namespace tprof {

// An event of an older or newer NVTX may be smaller or larger. The place of these fields has been
// the same since the first.
inline marks::Attributes attributes_of(const nvtxEventAttributes_t* event) {
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
// Plain text has none.
template <typename Char>
marks::Attributes attributes_of(const Char*) {
  return {};
}

}  // namespace tprof
