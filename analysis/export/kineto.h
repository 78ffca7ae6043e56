// Writes a rank's trace as PyTorch's profiler (Kineto) does, as far as calls, copies, ranges and
// steps go. It is for tools that read such traces: HTA and TensorBoard's profiler.
#pragma once

#include "export/nesting.h"
#include "export/rank_files.h"

namespace tprof::trace_export {

class KinetoTrace : public RankFormat {
 public:
  KinetoTrace(const Exported& of, std::vector<const read::Process*> processes);

  std::string file_name() const override;
  void begin(std::string& out) override;
  void call(const read::Process& process, const read::Event& e, const read::DeviceTime* t,
            std::string& out) override;
  void range(const read::Process& process, const read::Range& r, std::string& out) override;
  void end(std::string& out) override;
  std::uint64_t timed() const override { return timed_; }
  bool look(const std::vector<const read::Process*>& of_file) override;
  void looked(std::string& out) override;

 private:
  // Where and when an event is.
  struct Place {
    std::int64_t pid = 0;
    std::int64_t tid = 0;
    std::int64_t from_ns = 0;
    std::int64_t dur_ns = 0;
  };
  // `name` comes with its quotes, `arguments` without their braces.
  void event(std::string_view category, std::string_view name, const Place& at,
             std::string arguments, std::string& out);
  static void process_name(std::int64_t pid, const std::string& name, std::string& out);
  void operation(const read::Event& e, const read::Comm& comm, const Place& at, std::string& out);
  void on_device(const read::Process& process, const read::Event& e, const read::DeviceTime& t,
                 std::string& out);
  void steps(const read::Process& process, std::string& out);

  const Exported& of_;
  std::vector<const read::Process*> processes_;
  bool looks_ = false;
  Nesting slices_;                          // of the file that is read
  std::vector<const read::Process*> here_;  // in it
  std::uint64_t calls_ = 0;
  std::uint64_t timed_ = 0;
};

}  // namespace tprof::trace_export
