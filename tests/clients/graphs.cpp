// Captures, builds and changes CUDA graphs, with copies and all-gathers in them, as its argument
// says:
//
//   graphs STATEMENTS
//
// The statements (kStatements below) are separated by semicolons; what one with a "!" asks for must
// be refused. They give names to graphs, nodes and executables.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>
#include <signal.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "check.h"

extern "C" {
decltype(cudaStreamBeginCapture) cudaStreamBeginCapture_ptsz;
decltype(cudaStreamEndCapture) cudaStreamEndCapture_ptsz;
decltype(cudaMemcpyAsync) cudaMemcpyAsync_ptsz;
decltype(cudaGraphLaunch) cudaGraphLaunch_ptsz;
// This is new in CUDA 13.3; the runtime that is linked here may be older.
struct cudaGraphRecaptureCallbackData;
[[gnu::weak]] cudaError_t cudaStreamBeginRecaptureToGraph(cudaStream_t, cudaStreamCaptureMode,
                                                          cudaGraph_t,
                                                          cudaGraphRecaptureCallbackData*);
void __cudaRegisterVar(void** module, char* host, char* device, const char* name, int external,
                       size_t size, int constant, int global);
}

namespace {

constexpr size_t kSize = 4096;
constexpr auto kMode = cudaStreamCaptureModeThreadLocal;
constexpr auto kUp = cudaMemcpyHostToDevice, kDown = cudaMemcpyDeviceToHost;
char *device, *host, symbol;
cudaStream_t stream;
std::map<std::string, cudaGraph_t> graphs;
std::map<std::string, cudaGraphExec_t> executables;
std::map<std::string, cudaGraphNode_t> nodes;
ncclComm_t comm;

struct Words {
  bool refused = false;
  std::string statement;
  std::vector<std::string> words;

  const std::string& operator[](size_t i) const { return words.at(i); }
  size_t number(size_t i, size_t otherwise = 1) const {
    return i < words.size() ? std::stoul(words[i]) : otherwise;
  }
  cudaGraph_t& graph(size_t i) const { return graphs[words.at(i)]; }
  cudaGraphExec_t& executable(size_t i) const { return executables[words.at(i)]; }
  cudaGraphNode_t& node(size_t i) const { return nodes[words.at(i)]; }
  // Returns the node that comes before, and how many these are: one or none.
  const cudaGraphNode_t* before(size_t i) const { return i < words.size() ? &node(i) : nullptr; }
  size_t befores(size_t i) const { return i < words.size() ? 1 : 0; }
  bool up(size_t i) const { return words.at(i) == "up"; }
};

void run(const std::string& program);

// Returns a function of the driver that does not go through a preload.
template <typename F>
F* driver(const char* name) {
  auto* found = reinterpret_cast<F*>(dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), name));
  MUST(found != nullptr);
  return found;
}
// Looks the function up by the name that it has in the library.
#define DRIVER(function) DRIVER_NAMED(function)
#define DRIVER_NAMED(function) driver<decltype(function)>(#function)

cudaMemcpy3DParms box(bool up, size_t width) {
  cudaMemcpy3DParms p{};
  p.dstPtr = {up ? device : host, 64, 64, 4};
  p.srcPtr = {up ? host : device, 64, 64, 4};
  p.extent = {width, 3, 2};  // 6 rows
  p.kind = up ? kUp : cudaMemcpyDefault;
  return p;
}

CUDA_MEMCPY3D driver_box(const std::string& way, size_t bytes, size_t rows) {
  CUDA_MEMCPY3D b{};
  const bool down = way == "down";
  b.srcMemoryType = down || way == "within" ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  b.dstMemoryType = down ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  b.srcHost = b.dstHost = host;
  b.srcDevice = b.dstDevice = reinterpret_cast<CUdeviceptr>(device);
  if (way == "unified") {
    b.srcMemoryType = b.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    b.srcDevice = reinterpret_cast<CUdeviceptr>(host);
  }
  b.srcPitch = b.dstPitch = 64;
  b.WidthInBytes = bytes;
  b.Height = rows;
  b.Depth = 1;
  return b;
}

int conditional(const Words& w) {
  cudaGraphConditionalHandle condition = 0;
  OK(cudaGraphConditionalHandleCreate(&condition, w.graph(1), 1, cudaGraphCondAssignDefault));
  cudaGraphNodeParams params{};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = condition;
  params.conditional.type = cudaGraphCondTypeIf;
  params.conditional.size = 1;
  OK(cudaGraphAddNode(&w.node(0), w.graph(1), nullptr, nullptr, 0, &params));
  w.graph(2) = params.conditional.phGraph_out[0];
  return 0;
}

// A node is put into the capture by hand, and the stream goes on after it.
int put_in(const Words& w) {
  cudaStreamCaptureStatus status;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* after = nullptr;
  size_t count = 0;
  OK(cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &after, nullptr, &count));
  cudaGraphNode_t node = nullptr;
  OK(cudaGraphAddMemcpyNode1D(&node, graph, after, count, host, device, w.number(0), kDown));
  return cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1,
                                             cudaStreamSetCaptureDependencies);
}

int launched(const Words& w) {
  for (size_t i = 0; i < w.number(1); ++i) OK(cudaGraphLaunch(w.executable(0), stream));
  return cudaStreamSynchronize(stream);
}

// Makes executables that all live to the end, and launches each once: some kinds do something else.
int alive(const Words& w) {
  constexpr size_t kSizes = 1000;
  for (size_t i = 0; i < w.number(0); ++i) {
    const size_t kind = i % w.number(1);
    run("begin; upload " + std::to_string(1 + kind % kSizes) + "; gather " +
        std::to_string(1 + kind / kSizes) + "; end g; exec x g; launch_in x; destroy g");
  }
  return cudaStreamSynchronize(stream);
}

const std::map<std::string, std::function<int(const Words&)>> kStatements = {
    // Copies and calls: BYTES or COUNT
    {"upload",
     [](const Words& w) { return cudaMemcpyAsync(device, host, w.number(0), kUp, stream); }},
    {"gather",
     [](const Words& w) {
       return ncclAllGather(device, device + kSize, w.number(0), ncclFloat32, comm, stream);
     }},
    {"sync", [](const Words&) { return cudaStreamSynchronize(stream); }},
    // Captures: GRAPH; into one, behind a NODE; on the thread's own default stream
    {"begin", [](const Words&) { return cudaStreamBeginCapture(stream, kMode); }},
    {"end", [](const Words& w) { return cudaStreamEndCapture(stream, &w.graph(0)); }},
    {"to_graph",
     [](const Words& w) {
       return cudaStreamBeginCaptureToGraph(stream, w.graph(0), w.before(1), nullptr, w.befores(1),
                                            kMode);
     }},
    {"recapture",
     [](const Words& w) {
       return cudaStreamBeginRecaptureToGraph(stream, kMode, w.graph(0), nullptr);
     }},
    {"put_in", put_in},
    {"begin_own", [](const Words&) { return cudaStreamBeginCapture_ptsz(nullptr, kMode); }},
    {"upload_own",
     [](const Words& w) { return cudaMemcpyAsync_ptsz(device, host, w.number(0), kUp, nullptr); }},
    {"end_own", [](const Words& w) { return cudaStreamEndCapture_ptsz(nullptr, &w.graph(0)); }},
    {"launch_own",
     [](const Words& w) {
       for (size_t i = 0; i < w.number(1); ++i) OK(cudaGraphLaunch_ptsz(w.executable(0), nullptr));
       return cudaStreamSynchronize(cudaStreamPerThread);
     }},
    // By hand: GRAPH; NODE GRAPH up|down BYTES [AFTER]
    {"graph", [](const Words& w) { return cudaGraphCreate(&w.graph(0), 0); }},
    {"destroy", [](const Words& w) { return cudaGraphDestroy(w.graph(0)); }},
    {"clone", [](const Words& w) { return cudaGraphClone(&w.graph(0), w.graph(1)); }},
    {"child",
     [](const Words& w) {
       return cudaGraphAddChildGraphNode(&w.node(0), w.graph(1), nullptr, 0, w.graph(2));
     }},
    {"node",
     [](const Words& w) {
       return cudaGraphAddMemcpyNode1D(&w.node(0), w.graph(1), w.before(4), w.befores(4),
                                       w.up(2) ? device : host, w.up(2) ? host : device,
                                       w.number(3), w.up(2) ? kUp : kDown);
     }},
    {"node_nowhere",
     [](const Words& w) {
       return cudaGraphAddMemcpyNode1D(&w.node(0), w.graph(1), nullptr, 0, device, nullptr, 8, kUp);
     }},
    {"box",
     [](const Words& w) {
       const cudaMemcpy3DParms p = box(w.up(2), w.number(3));
       return cudaGraphAddMemcpyNode(&w.node(0), w.graph(1), w.before(4), w.befores(4), &p);
     }},
    {"any_box",
     [](const Words& w) {
       cudaGraphNodeParams any{};
       any.type = cudaGraphNodeTypeMemcpy;
       any.memcpy.copyParams = box(w.up(2), w.number(3));
       return cudaGraphAddNode(&w.node(0), w.graph(1), w.before(4), nullptr, w.befores(4), &any);
     }},
    {"to_symbol",  // 32 bytes
     [](const Words& w) {
       __cudaRegisterVar(nullptr, &symbol, nullptr, "symbol", 0, 64, 0, 0);
       return cudaGraphAddMemcpyNodeToSymbol(&w.node(0), w.graph(1), w.before(2), 1, &symbol, host,
                                             32, 8, kUp);
     }},
    {"from_symbol",  // 16 bytes
     [](const Words& w) {
       return cudaGraphAddMemcpyNodeFromSymbol(&w.node(0), w.graph(1), w.before(2), 1, host,
                                               &symbol, 16, 0, kDown);
     }},
    {"conditional", conditional},  // NODE GRAPH BODY
    // Executables: EXEC GRAPH; EXEC [TIMES]
    {"exec", [](const Words& w) { return cudaGraphInstantiate(&w.executable(0), w.graph(1), 0); }},
    {"exec_device",
     [](const Words& w) {
       return cudaGraphInstantiateWithFlags(&w.executable(0), w.graph(1),
                                            cudaGraphInstantiateFlagDeviceLaunch);
     }},
    {"exec_destroy", [](const Words& w) { return cudaGraphExecDestroy(w.executable(0)); }},
    {"update",
     [](const Words& w) {
       cudaGraphExecUpdateResultInfo result;
       return cudaGraphExecUpdate(w.executable(0), w.graph(1), &result);
     }},
    {"launch", launched},
    {"launch_in", [](const Words& w) { return cudaGraphLaunch(w.executable(0), stream); }},
    {"alive", alive},  // EXECUTABLES KINDS
    // Past the wrappers: GRAPH up|down|unified|within BYTES [ROWS]
    {"graph_past",
     [](const Words& w) {
       void* runtime = dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD);
       const auto create =
           reinterpret_cast<decltype(&cudaGraphCreate)>(dlsym(runtime, "cudaGraphCreate"));
       return create(&w.graph(0), 0);
     }},
    {"driver_graph", [](const Words& w) { return DRIVER(cuGraphCreate)(&w.graph(0), 0); }},
    {"driver_node",
     [](const Words& w) {
       CUgraphNode node = nullptr;
       const CUDA_MEMCPY3D b = driver_box(w[1], w.number(2), w.number(3));
       return DRIVER(cuGraphAddMemcpyNode)(&node, w.graph(0), nullptr, 0, &b, nullptr);
     }},
    {"driver_kernel",
     [](const Words& w) {
       CUgraphNode node = nullptr;
       const CUDA_KERNEL_NODE_PARAMS params{};
       return DRIVER(cuGraphAddKernelNode)(&node, w.graph(0), nullptr, 0, &params);
     }},
    {"driver_clone", [](const Words& w) { return DRIVER(cuGraphClone)(&w.graph(0), w.graph(1)); }},
    {"driver_begin",
     [](const Words&) {
       return DRIVER(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
     }},
    {"driver_upload",
     [](const Words& w) {
       return DRIVER(cuMemcpyHtoDAsync)(reinterpret_cast<CUdeviceptr>(device), host, w.number(0),
                                        stream);
     }},
    {"driver_end", [](const Words& w) { return DRIVER(cuStreamEndCapture)(stream, &w.graph(0)); }},
    {"kill", [](const Words&) { return kill(getpid(), SIGKILL); }},
};

void run(const std::string& program) {
  std::istringstream all(program);
  for (std::string one; std::getline(all, one, ';');) {
    std::istringstream in(one);
    Words w;
    if (!(in >> w.statement)) continue;
    w.refused = w.statement[0] == '!';
    if (w.refused) w.statement.erase(0, 1);
    for (std::string word; in >> word;) w.words.push_back(word);
    const auto does = kStatements.find(w.statement);
    const bool well = does != kStatements.end() && does->second(w) == 0;
    check(well != w.refused, one.c_str(), __FILE__, __LINE__);
    if (w.refused) cudaGetLastError();
  }
}

}  // namespace

int main(int argc, char** argv) {
  MUST(argc == 2);
  // Loads the driver as the real runtime does; the stand-in's runtime does not need it.
  MUST(dlopen("libcuda.so.1", RTLD_NOW) != nullptr);
  OK(cudaMalloc(reinterpret_cast<void**>(&device), 2 * kSize));
  OK(cudaHostAlloc(reinterpret_cast<void**>(&host), kSize, cudaHostAllocDefault));
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  ncclUniqueId id;
  OK(ncclGetUniqueId(&id));
  OK(ncclCommInitRank(&comm, 1, id, 0));
  run(argv[1]);
  OK(ncclCommDestroy(comm));
}
