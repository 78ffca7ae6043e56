// The table by which programs find the API: the library's only data that others see.
#include "interpose/user/user.h"

extern "C" {
[[gnu::visibility("default")]] extern const tprof_functions tprof_functions_v1;
}

const tprof_functions tprof_functions_v1 = {
    sizeof(tprof_functions),   tprof::user::push,      tprof::user::pop,
    tprof::user::start,        tprof::user::end,       tprof::user::instant,
    tprof::user::counter,      tprof::user::step,      tprof::user::phase,
    tprof::user::reset,        tprof::user::flush,     tprof::user::enabled,
    tprof::user::rank,         tprof::user::totals,    tprof::user::totals_and_reset,
    tprof::user::pop_timed,    tprof::user::end_timed, tprof::user::pause,
    tprof::user::push_on,      tprof::user::start_on,  tprof::user::times_on_device,
    tprof::user::flush_device,
};
