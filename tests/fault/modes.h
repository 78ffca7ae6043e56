// Modes of the client besides calling, each in a file of its own.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <string_view>

namespace fault {

int with_child(std::string_view how);                   // children.cpp
int small_stacks(int n);                                // small_stacks.cpp
int end(std::string_view how, std::string_view where);  // ends.cpp
int keys(int comms);                                    // keys.cpp
int starved(std::string_view what, std::string_view when, std::string_view how);  // starved.cpp

// client.cpp
void set_limit(__rlimit_resource_t which, rlim_t value);
rlim_t address_space_in_use();
void refuse(std::uint32_t call);

}  // namespace fault
