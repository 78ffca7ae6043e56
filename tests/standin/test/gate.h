// Work that stays in a stream until the test opens the gate, so that no test needs to sleep.
#pragma once

#include <cuda_runtime_api.h>

#include <future>
#include <memory>
#include <utility>

class Gate {
 public:
  explicit Gate(cudaStream_t stream) {
    // The stream may get here only after the gate is gone.
    using Opened = std::future<void>;
    cudaLaunchHostFunc(
        stream, [](void* opened) { std::unique_ptr<Opened>(static_cast<Opened*>(opened))->wait(); },
        new Opened(opened_.get_future()));
  }
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void open() {
    if (!std::exchange(is_open_, true)) opened_.set_value();
  }

 private:
  std::promise<void> opened_;
  bool is_open_ = false;
};
