// `tprof doctor` reads programs and libraries as ELF files. Here their content is arbitrary.
#include "doctor/elf.h"

#include "read/error.h"
#include "support/fuzz.h"
#include "support/tool_run.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tprof;
  const auto file = fuzz::write_file("program", fuzz::text_of(data, size));
  try {
    const auto elf = doctor::read_elf(file);
    if (!elf) return 0;
    fuzz::promise(elf->interpreter.size() <= size && elf->function_list.size() <= size,
                  "no text is longer than the file");
    doctor::machine_name(elf->machine);
  } catch (const read::BadInput& e) {
    const std::string_view what(e.what());
    fuzz::promise(what.find(file.string()) != std::string_view::npos, "it is named", what);
  }
  return 0;
}
