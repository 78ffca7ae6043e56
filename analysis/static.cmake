# The tool needs nothing of the system that it runs on, not even a C library of a certain age, if all
# that it is made of is here to be linked in. Sets TPROF_STATIC, and `fmt`, `simdjson`, `zlib`,
# `sqlite` and `libdw` to what to link.
include(CheckCXXSourceCompiles)
# Spack and conda keep libraries in folders of their own, and bring them along.
option(TPROF_LINK_IN "Link the tool's libraries into it, if all are here: it then runs anywhere" ON)
set(missing)

# As source where scripts/bootstrap fetched it, since the system has it as a shared library only.
if(EXISTS ${TPROF_DOWNLOADS}/simdjson/simdjson.cpp)
  add_library(simdjson_source STATIC ${TPROF_DOWNLOADS}/simdjson/simdjson.cpp)
  target_include_directories(simdjson_source SYSTEM PUBLIC ${TPROF_DOWNLOADS}/simdjson)
  set(simdjson simdjson_source)
else()
  find_package(simdjson REQUIRED)
  if(simdjson_VERSION VERSION_LESS 3.9) # it has no escaped_key()
    message(FATAL_ERROR "simdjson ${simdjson_VERSION} is too old, 3.9 is the first that will do: run "
                        "scripts/bootstrap build, which fetches one")
  endif()
  set(simdjson simdjson::simdjson_static)
  if(NOT TARGET simdjson::simdjson_static)
    list(APPEND missing simdjson)
  endif()
endif()

find_library(TPROF_ZLIB_STATIC NAMES libz.a)
set(zlib ${TPROF_ZLIB_STATIC})
if(NOT TPROF_ZLIB_STATIC)
  list(APPEND missing zlib)
endif()

find_library(TPROF_SQLITE_STATIC NAMES libsqlite3.a)
set(sqlite ${TPROF_SQLITE_STATIC})
if(NOT TPROF_SQLITE_STATIC)
  list(APPEND missing sqlite)
endif()

# With what it needs itself: from Debian 13 and Ubuntu 24.04 on also zstd, which its package brings.
find_library(TPROF_ZSTD_STATIC NAMES libzstd.a)
set(libdw dw elf)
set(libdw_static libdw.a libelf.a libbz2.a liblzma.a)
if(TPROF_ZSTD_STATIC)
  list(APPEND libdw_static ${TPROF_ZSTD_STATIC})
endif()
list(TRANSFORM libdw_static REPLACE "^lib(.*[.]a)$" "-l:lib\\1")
# Those of elfutils 0.192 (Debian 13) also need what no package has: elfutils_trees.cpp.
set(user ${CMAKE_BINARY_DIR}/CMakeFiles/dw_user.cpp)
file(WRITE ${user} "#include <elfutils/libdw.h>\n"
                   "int main() { return dwarf_begin_elf(nullptr, DWARF_C_READ, nullptr) != nullptr; }\n")
function(link_libdw result)
  try_compile(${result} ${CMAKE_BINARY_DIR}/CMakeFiles/${result} SOURCES ${user} ${ARGN}
              LINK_OPTIONS -static-pie LINK_LIBRARIES ${libdw_static} ${zlib} CXX_STANDARD 20)
endfunction()
link_libdw(TPROF_DW_STATIC)
if(NOT TPROF_DW_STATIC)
  set(trees ${CMAKE_CURRENT_SOURCE_DIR}/elfutils_trees.cpp)
  link_libdw(TPROF_DW_STATIC_BUT_TREES ${trees})
  if(TPROF_DW_STATIC_BUT_TREES)
    add_library(elfutils_trees STATIC ${trees})
    list(APPEND libdw_static elfutils_trees)
  else()
    list(APPEND missing libdw)
  endif()
endif()

set(CMAKE_REQUIRED_LINK_OPTIONS -static-pie)
check_cxx_source_compiles("#include <iostream>\nint main() { std::cout << 1; }" TPROF_STATIC_LIBC)
unset(CMAKE_REQUIRED_LINK_OPTIONS)
if(NOT TPROF_STATIC_LIBC)
  list(APPEND missing "the C and C++ libraries")
endif()

# Debian has no libfmt.a. Its contents follow from the headers, for the versions that fmt.cpp is
# written for; for others every file of ours brings its own copy, which takes longer to compile.
set(user ${CMAKE_BINARY_DIR}/CMakeFiles/fmt_user.cpp)
file(WRITE ${user} "#include <fmt/format.h>\n"
                   "int main() { fmt::print(stderr, \"{} {:.1f} {:L}\", 1, 1.5, 1000); }\n")
try_compile(TPROF_FMT_ONCE ${CMAKE_BINARY_DIR}/CMakeFiles/fmt_once
            SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/fmt.cpp ${user} CXX_STANDARD 20)

if(TPROF_SANITIZE OR missing OR NOT TPROF_LINK_IN)
  set(TPROF_STATIC OFF)
  set(fmt fmt::fmt)
  set(zlib ZLIB::ZLIB)
  set(sqlite SQLite::SQLite3)
  if(NOT TARGET simdjson_source)
    set(simdjson simdjson::simdjson)
  endif()
else()
  set(TPROF_STATIC ON)
  set(libdw ${libdw_static})
  # It would load extensions, which is nothing for a program that is linked so.
  add_library(no_extensions STATIC no_extensions.cpp)
  list(APPEND sqlite no_extensions)
  set(fmt fmt::fmt-header-only)
  if(TPROF_FMT_ONCE)
    add_library(fmt_once STATIC fmt.cpp)
    set(fmt fmt_once)
  endif()
endif()
if(missing AND TPROF_LINK_IN AND NOT TPROF_SANITIZE)
  list(JOIN missing ", " missing)
  message(STATUS "tprof: can't be linked in here: ${missing}. It will run only where the shared "
                 "libraries of this system are; scripts/bootstrap fetches what it can")
endif()
