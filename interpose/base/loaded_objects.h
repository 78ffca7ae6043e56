// The objects that the loader has mapped, and forks.
//
// dl_iterate_phdr holds a lock of the loader, which a fork copies as it is (glibc gives the child
// some of its locks back, not this one): a child that is forked meanwhile by another thread could
// never load a library again. So a fork waits until we are through; and where one did not, its
// child does without the list.
#pragma once

#include <link.h>

#include <cstddef>
#include <span>
#include <string_view>

namespace tprof {

// dl_iterate_phdr. False, and nothing was called, in a child that was forked while a thread of its
// parent was in here.
bool each_loaded_object(int (*callback)(dl_phdr_info*, std::size_t, void*), void* data);

// Of the program, which the loader knows by no path; `within` is an address in it. Empty: not
// known.
std::string_view program_path(const void* within, std::span<char> buffer);

}  // namespace tprof
