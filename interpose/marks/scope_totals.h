// Adds a scope that has ended to its thread's ledger.
#pragma once

#include <cstdint>

#include "interpose/format/ranges.h"
#include "interpose/marks/ranges.h"
#include "interpose/record/transaction.h"

namespace tprof::marks {

// Returns the number of the scope's name and category. This comes before it is known how the scope
// ends. kMaxScopes: there is no room for more.
std::uint32_t scope_number(const OpenRange& range);

void add_totals(Transaction& transaction, const OpenRange& range, std::uint32_t scope,
                std::uint64_t dur_ns);

void forget_scopes();  // in the child: their table is its parent's

}  // namespace tprof::marks
