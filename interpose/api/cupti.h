// Functions that make a program a client of CUPTI: X(function, since). Their wrappers do more than
// pass the call on only if TPROF_TIMING=cupti made us a client (hook/cupti.cpp).
#pragma once

#define TPROF_CUPTI(X)        \
  X(cuptiSubscribe, 4000)     \
  X(cuptiSubscribe_v2, 13000) \
  X(cuptiActivityRegisterCallbacks, 6000)
