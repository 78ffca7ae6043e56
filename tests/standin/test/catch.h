// Catch2 as Debian 12 has it (2.13) or as newer systems do (3).
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
