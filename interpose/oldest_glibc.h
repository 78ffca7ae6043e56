// Included before everything else: binds the functions that glibc 2.34 moved into libc.so under a
// new version to their first version, so that the library loads from glibc 2.28 on. A preload that
// cannot be loaded kills every process of the job.
#pragma once

#if defined(__x86_64__)
#define TPROF_BASE "GLIBC_2.2.5"
#define TPROF_DLADDR1 "GLIBC_2.3.3"
#elif defined(__aarch64__)
#define TPROF_BASE "GLIBC_2.17"
#define TPROF_DLADDR1 "GLIBC_2.17"
#else
#error "not ported to this architecture"
#endif

#if !defined(TPROF_DEFINES_DLSYM)
__asm__(".symver dlsym,dlsym@" TPROF_BASE);
#endif
__asm__(".symver dlopen,dlopen@" TPROF_BASE);
__asm__(".symver dlclose,dlclose@" TPROF_BASE);
__asm__(".symver dlerror,dlerror@" TPROF_BASE);
__asm__(".symver dladdr,dladdr@" TPROF_BASE);
__asm__(".symver dladdr1,dladdr1@" TPROF_DLADDR1);
__asm__(".symver dlinfo,dlinfo@" TPROF_DLADDR1);
__asm__(".symver pthread_create,pthread_create@" TPROF_BASE);
__asm__(".symver pthread_key_create,pthread_key_create@" TPROF_BASE);
__asm__(".symver pthread_setcancelstate,pthread_setcancelstate@" TPROF_BASE);
__asm__(".symver pthread_setcanceltype,pthread_setcanceltype@" TPROF_BASE);
__asm__(".symver pthread_setspecific,pthread_setspecific@" TPROF_BASE);
__asm__(".symver pthread_getattr_np,pthread_getattr_np@" TPROF_BASE);
__asm__(".symver pthread_attr_getstack,pthread_attr_getstack@" TPROF_BASE);
__asm__(".symver pthread_attr_setstacksize,pthread_attr_setstacksize@" TPROF_BASE);

// musl lacks this. A musl program that inherits the preload calls nothing of ours, but musl ends it
// where a symbol is missing that is not weak.
__asm__(".weak dladdr1");
