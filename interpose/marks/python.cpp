#include "interpose/marks/python.h"

#include <dlfcn.h>

#include <cstring>
#include <string_view>

#include "interpose/base/hash.h"
#include "interpose/base/mapped_symbols.h"
#include "interpose/format/sites.h"

namespace tprof::python {
namespace {

// Offsets of fields, from offsetof() with that version's headers (frames are on the heap up to
// 3.10, later _PyInterpreterFrame). kNone: the version has no such field.
constexpr int kNone = -1;
struct Layout {
  const char* version;
  int state_frame;   // PyThreadState: the innermost frame, or (3.11, 3.12) what points to it
  int cframe_frame;  // in that: the innermost frame
  int frame_code;    // frame: the code object
  int frame_back;    // frame: its caller
  int frame_at;      // frame: the instruction
  int frame_owner;   // frame: one byte
  int code_begin;    // code: its first instruction, if `frame_at` is an address
  int unit;          // unit of `frame_at` in bytes, if it is an index
  int code_file;     // code: co_filename
  int code_name;     // code: co_qualname, or co_name
  int code_line;     // code: co_firstlineno
  int text;          // ASCII str: its first character
};
constexpr Layout kLayouts[] = {
    {"3.8.", 24, kNone, 32, 24, 104, kNone, kNone, 1, 104, 112, 40, 48},
    {"3.9.", 24, kNone, 32, 24, 104, kNone, kNone, 1, 104, 112, 40, 48},
    {"3.10.", 24, kNone, 32, 24, 96, kNone, kNone, 2, 104, 112, 40, 48},
    {"3.11.", 56, 8, 32, 48, 56, kNone, 184, 1, 112, 128, 72, 48},
    {"3.12.", 56, 0, 0, 8, 56, 70, 192, 1, 112, 128, 68, 40},
    {"3.13.", 72, kNone, 0, 8, 56, 70, 200, 1, 112, 128, 68, 40},
    {"3.14.", 72, kNone, 0, 8, 56, 74, 208, 1, 112, 128, 68, 40},
};
constexpr char kOwnedByC = 3;       // this and above: a frame for C code between Python frames
constexpr std::uintptr_t kTag = 3;  // tag bits of a frame's reference since 3.14
constexpr int kType = 8;            // PyObject: ob_type
constexpr int kTextLength = 16;     // str
constexpr int kTextState = 32;      // str
constexpr unsigned kAscii = 0x60;   // compact and ASCII: the characters follow the head

using ThreadState = const char* (*)();
using LineOf = int (*)(const void* code, int at);

const Layout* g_layout = nullptr;
ThreadState g_state = nullptr;
LineOf g_line_of = nullptr;
const void* g_code_type = nullptr;

template <typename T>
T read(const char* at, int offset) {
  T value;
  std::memcpy(&value, at + offset, sizeof value);
  return value;
}

template <typename F>
F symbol(const char* name) {
  return reinterpret_cast<F>(loader::dlsym(RTLD_DEFAULT, name));
}

std::string_view text_of(const char* str) {
  if (str == nullptr) return "?";
  const bool ascii = (read<std::uint32_t>(str, kTextState) & kAscii) == kAscii;
  if (!ascii) return "(not ASCII)";
  return {str + g_layout->text, read<std::size_t>(str, kTextLength)};
}

bool is_code(const char* object) {
  return object != nullptr && read<const void*>(object, kType) == g_code_type;
}

}  // namespace

bool find(FixedText& why) {
  const auto version_of = symbol<const char* (*)()>("Py_GetVersion");
  g_state = symbol<ThreadState>("PyGILState_GetThisThreadState");
  g_line_of = symbol<LineOf>("PyCode_Addr2Line");
  g_code_type = symbol<const void*>("PyCode_Type");
  if (version_of == nullptr || g_state == nullptr) return false;
  const std::string_view version = version_of();
  g_layout = nullptr;
  for (const Layout& layout : kLayouts) {
    if (version.starts_with(layout.version)) g_layout = &layout;
  }
  const bool free_threaded = version.find("free-threading") != std::string_view::npos;
  if (g_layout != nullptr && !free_threaded && g_line_of != nullptr && g_code_type != nullptr) {
    return true;
  }
  why << "of Python " << prefix(version, version.find(' '))
      << (free_threaded ? " without GIL" : "");
  return false;
}

std::size_t frames(Frame* to, std::size_t most) {
  const char* state = g_state();
  if (state == nullptr) return 0;
  const Layout& l = *g_layout;
  auto* frame = read<const char*>(state, l.state_frame);
  if (l.cframe_frame != kNone && frame != nullptr) frame = read<const char*>(frame, l.cframe_frame);
  std::size_t n = 0;
  for (; frame != nullptr && n < most; frame = read<const char*>(frame, l.frame_back)) {
    if (l.frame_owner != kNone && read<char>(frame, l.frame_owner) >= kOwnedByC) continue;
    const std::uintptr_t reference = read<std::uintptr_t>(frame, l.frame_code);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an object, untagged
    const auto* code = reinterpret_cast<const char*>(reference & ~kTag);
    if (!is_code(code)) continue;
    const int at =
        l.code_begin != kNone
            ? static_cast<int>(read<const char*>(frame, l.frame_at) - (code + l.code_begin))
            : read<int>(frame, l.frame_at) * l.unit;
    to[n++] = {code, at};
  }
  return n;
}

std::uint64_t identity(const Frame& frame) {
  const Layout& l = *g_layout;
  const auto file = reinterpret_cast<std::uintptr_t>(read<const char*>(frame.code, l.code_file));
  const auto name = reinterpret_cast<std::uintptr_t>(read<const char*>(frame.code, l.code_name));
  const auto code = reinterpret_cast<std::uintptr_t>(frame.code);
  const auto line = static_cast<std::uint32_t>(read<int>(frame.code, l.code_line));
  const auto at = static_cast<std::uint32_t>(frame.at);
  return mix64(code ^ mix64(file ^ name << 1) ^ (std::uint64_t{line} << 32 | at));
}

namespace {

// Cuts off Python's installation folder, which every frame would repeat.
std::string_view shortened(std::string_view file) {
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    const std::size_t at = file.rfind(folder);
    if (at != std::string_view::npos) return without_prefix(file, at + 1);
  }
  return file;
}

}  // namespace

bool describe(const Frame& frame, FixedText& to, std::size_t room) {
  const std::string_view function = text_of(read<const char*>(frame.code, g_layout->code_name));
  const std::string_view file =
      shortened(text_of(read<const char*>(frame.code, g_layout->code_file)));
  constexpr std::size_t kLineDigits = 11;
  if (to.size() + function.size() + file.size() + kLineDigits + 4 > room) return false;
  constexpr char kField[] = {kSiteField, '\0'};
  constexpr char kEnd[] = {kSiteField, kSiteFrame, '\0'};
  to << function << kField << file << kField;
  to.number(g_line_of(frame.code, frame.at)) << kEnd;
  return true;
}

}  // namespace tprof::python
