// Words for what keeps a program from being traced.
#include "report/words.h"

namespace tprof::report {

using diagnose::Say;

#define RING_FOLDER "set TPROF_RING_DIR to a folder on tmpfs, ext4 or XFS that may be written to"
#define OTHER_LOADER "{program} has a dynamic loader that is not glibc's: {loader}"

std::span<const Words> words_of_doctor() {
  static constexpr Words kWords[] = {
      {Say::does_not_load, "the library does not load into /bin/true: {said}[exit code {code}]",
       "use a library that was built for this system"},
      {Say::limit,
       "ulimit -f: no file may grow to {quota?|64 KiB, so nothing is traced}[the {quota} of "
       "TPROF_QUOTA, so lines will be missing]",
       "raise it: ulimit -f unlimited"},
      {Say::disabled, "TPROF_DISABLE={value}: nothing is traced", "unset TPROF_DISABLE"},
      {Say::output_full, "cannot {step} in {folder}: {reason}",
       "free space or quota there, or choose another folder with {variable}"},
      {Say::output_unusable, "cannot {step} in {folder}: {reason}",
       "choose another folder with {variable}"},
      {Say::create_file, "create a file"},
      {Say::allocate, "allocate 2 MiB"},
      {Say::map_file, "map a file"},
      {Say::ring_dir_unusable,
       "no ring file can be in {ring_dir} (TPROF_RING_DIR): it will be in {rings|memory}",
       RING_FOLDER},
      {Say::ring_nowhere,
       "ring files can't lie in {folder} ({file_system}), and neither in /dev/shm, TMPDIR or /tmp: "
       "they would be memory, and a kill loses up to 10 s",
       RING_FOLDER},
      {Say::output_small, "{folder} has {room} left, and each process may write {quota} of lines",
       "choose another folder with TPROF_OUTPUT_DIR, or lower TPROF_QUOTA"},
      {Say::not_found, "{object} wants {library}, which is not found",
       "add its folder to LD_LIBRARY_PATH"},
      {Say::program_not_found, "{program}: no such program, but {script} wants it",
       "install it, or correct the script's first line"},
      {Say::loader_not_found, "{program} wants the dynamic loader {loader}, which is not there",
       "install it, or run where it is there"},
      {Say::container,
       "{launcher} starts the program in a container, which can't be looked into from here",
       "mount the library and the output folder into it, pass LD_PRELOAD and TPROF_OUTPUT_DIR on, "
       "and run tprof doctor inside; its glibc has to be {glibc} or newer"},
      {Say::elsewhere, "{launcher} starts programs on other hosts; what was looked at is here",
       "{launcher} tprof doctor tells of each of them"},
      {Say::other_machine,
       "{program} is for {machine}{is_64_bit?| (32 bits)}, and the library for {library_machine}",
       "use a libtprof.so that was built for it"},
      {Say::secure_execution,
       "{program} {by_mode?is setuid or setgid|has file capabilities}, so its dynamic loader "
       "ignores LD_PRELOAD",
       "run a copy without that, or start the program that it runs without it"},
      {Say::static_program,
       "{program} is linked statically: there is no dynamic loader to preload anything",
       "link it dynamically"},
      {Say::musl, OTHER_LOADER, "build it for a system with glibc"},
      {Say::unknown_loader, OTHER_LOADER, "build it for a system with glibc"},
      {Say::old_glibc, "{complaint}",
       "the library needs glibc {glibc} or newer: run on a newer system"},
      {Say::loader, "{complaint}"},
      {Say::static_nccl, "{path} has NCCL linked in: its collectives are not counted",
       "link it with libnccl.so"},
      {Say::cudart_linked_in,
       "{path} has the CUDA runtime linked in (nvcc's default): its copies are not counted",
       "set TPROF_DRIVER=1, or link it with nvcc -cudart shared"},
      {Say::exports_nccl,
       "{path} exports NCCL's functions itself, before the library's: only what it passes on to "
       "these is counted",
       "link it with libnccl.so"},
      {Say::pynccl,
       "vLLM is installed: where it takes NCCL's functions with ctypes (pynccl), collectives of "
       "its own are not counted, those of PyTorch are",
       "set TPROF_DLSYM=1"},
      {Say::deep_ep, "DeepEP moves data between GPUs from inside its kernels, which no call shows",
       "treat it as not counted"},
      {Say::torch_without_cuda,
       "{folder} is a PyTorch without CUDA: it calls neither NCCL nor the CUDA runtime",
       "install PyTorch for CUDA"},
      {Say::nothing_served,
       "no NCCL and no CUDA runtime is among the libraries that it is linked to",
       "if it opens them when it runs, all is well: tprof doctor DIR tells afterwards{dlsym?|; if "
       "it takes their functions with dlsym (ctypes, cffi), set TPROF_DLSYM=1}"},
  };
  return kWords;
}

}  // namespace tprof::report
