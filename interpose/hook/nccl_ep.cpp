// The wrappers of NCCL EP, which sends tokens to their experts and back.
//
// All arguments, at most ten, are passed on as they are: before 0.1 (in NCCL 2.30.3 and 2.30.4) the
// functions took other ones. Since 0.1 structures have a magic number. Calls without it are passed
// through, and the coverage reports them.
#include <optional>

#include "interpose/base/shared_map.h"
#include "interpose/calls/nccl_call.h"
#include "interpose/hook/wrapper.h"
#include "interpose/session/coverage.h"

using tprof::Bucket;
using tprof::Fn;
using tprof::NcclArgs;
using tprof::Thread;

namespace {

using RawArg = void*;

// The beginnings of the structures in nccl_ep.h, which keeps released fields.
struct Tensor {
  unsigned int size;
  unsigned int magic;
  unsigned int ndim;
  ncclDataType_t type;
  void* data;
  ncclWindow_t window;
  std::uint64_t offset;
  const std::size_t* sizes;
};
struct Tensors {  // ncclEpDispatchInputs_t, ncclEpCombineInputs_t and both outputs
  static constexpr unsigned int kMagic = 0xc00fffee;
  unsigned int size;
  unsigned int magic;
  const Tensor* tokens;
};

// Returns null if the argument is not of NCCL EP 0.1 or newer.
const Tensors* tensors(RawArg argument) {
  const auto* all = static_cast<const Tensors*>(argument);
  return all != nullptr && all->magic == Tensors::kMagic && all->size >= sizeof *all ? all
                                                                                     : nullptr;
}

// Returns nothing if the arguments are not known. Which tokens go to other ranks is known only on
// the device.
std::optional<NcclArgs> reading(const RawArg (&argument)[10], std::size_t tokens, RawArg stream,
                                ncclComm_t comm) {
  NcclArgs a{nullptr, nullptr, 0, ncclInt8, comm, static_cast<cudaStream_t>(stream)};
  if (tokens == 0) return a;
  const Tensors* inputs = tensors(argument[1]);
  const Tensors* all = inputs == nullptr ? nullptr : tensors(argument[tokens]);
  if (all == nullptr) return {};
  const Tensor* tensor = all->tokens;
  if (tensor == nullptr || tensor->size < sizeof *tensor || tensor->sizes == nullptr) return {};
  a.type = tensor->type;
  a.count = 1;
  for (unsigned int i = 0; i < tensor->ndim; ++i) a.count *= tensor->sizes[i];
  return a;
}

// The communicator of each group, and of each handle made from a group.
constinit tprof::SharedMap<ncclComm_t> g_comm_of{tprof::LockOrder::handles};

ncclComm_t communicator(RawArg comm) {
  return static_cast<ncclComm_t>(comm);
}
ncclComm_t group(RawArg group) {
  return g_comm_of.find(group);
}

}  // namespace

#define TEN                                                                                  \
  (RawArg a, RawArg b, RawArg c, RawArg d, RawArg e, RawArg f, RawArg g, RawArg h, RawArg i, \
   RawArg j)
#define GIVEN a, b, c, d, e, f, g, h, i, j

#define X(function, since, tokens, stream)                                            \
  TPROF_TYPED(ncclResult_t, function, TEN, {                                          \
    Thread* t = tprof::recording_thread();                                            \
    if (t == nullptr) TPROF_PASS_ON(real(GIVEN));                                     \
    const RawArg argument[] = {GIVEN};                                                \
    const auto args = reading(argument, tokens, argument[stream], g_comm_of.find(a)); \
    if (!args) {                                                                      \
      tprof::coverage::note(tprof::Note::uncounted, #function);                       \
      return real(GIVEN);                                                             \
    }                                                                                 \
    return tprof::nccl_call<Fn::function, Bucket::EP>(                                \
        *t, *args, reinterpret_cast<const void*>(real), [&] { return real(GIVEN); }); \
  })
TPROF_NCCL_EP(X)
#undef X

#define X(function, since, from)                          \
  TPROF_TYPED(ncclResult_t, function, TEN, {              \
    const ncclResult_t result = real(GIVEN);              \
    if (tprof::accepted(result) && a != nullptr)          \
      g_comm_of.insert(*static_cast<void**>(a), from(b)); \
    return result;                                        \
  })
TPROF_NCCL_EP_LIFE(X)
#undef X
#undef GIVEN
#undef TEN
