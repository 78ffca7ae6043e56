// Functions that make a program CUPTI's client: X(function, since). Their wrappers only pass the
// call on, unless TPROF_TIMING=cupti made us the client (hook/cupti.cpp).
#pragma once

#define TPROF_CUPTI(X)        \
  X(cuptiSubscribe, 4000)     \
  X(cuptiSubscribe_v2, 13000) \
  X(cuptiActivityRegisterCallbacks, 6000)
