// What makes a program a client of CUPTI: X(function, since). Only where TPROF_TIMING=cupti made us
// one does a wrapper do more than pass the call on (hook/cupti.cpp).
#pragma once

#define TPROF_CUPTI(X)        \
  X(cuptiSubscribe, 4000)     \
  X(cuptiSubscribe_v2, 13000) \
  X(cuptiActivityRegisterCallbacks, 6000)
