// Modes of the client besides calling, each in a file of its own.
#pragma once

#include <string_view>

namespace fault {

int with_child(std::string_view how);                   // children.cpp
int end(std::string_view how, std::string_view where);  // ends.cpp

}  // namespace fault
