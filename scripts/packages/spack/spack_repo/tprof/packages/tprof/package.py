# SPDX-License-Identifier: Apache-2.0
"""`scripts/bootstrap charts` fetches Chart.js and libunwind's source, as Spack has no package of either. Then, with
Spack 1.0 or newer:
`spack repo add scripts/packages/spack/spack_repo/tprof && spack install tprof`."""

import pathlib

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

from spack.package import *


CHECKOUT = pathlib.Path(__file__).resolve().parents[7]


class Tprof(CMakePackage):
    """Counts the NCCL collectives and CUDA copies of training jobs, from outside of any training
    command, and says where communication went and which rank holds the others back."""

    # The source is the checkout that this file lies in, as committed.
    git = CHECKOUT.as_uri()

    license("Apache-2.0", checked_by="tprof")

    version("0.1.0")

    generator("ninja")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.20:", type="build")

    # libtprof.so is built with their headers. It needs none of their libraries, and must not find
    # them by itself: it takes those that the program has loaded.
    depends_on("cuda@13", type="build")
    depends_on("nccl@2.28:", type="build")

    depends_on("cli11@2:")
    depends_on("elfutils")
    depends_on("fmt@8:")
    depends_on("nlohmann-json@3.10:")
    depends_on("simdjson@3.9:")
    depends_on("sqlite@3")
    depends_on("zlib-api")

    requires("platform=linux")
    requires("target=x86_64:", "target=aarch64:", policy="one_of")
    conflicts("%gcc@:10")
    conflicts("%clang@:13")

    sanity_check_is_file = ["bin/tprof", "lib/libtprof.so", "lib/tprof-node", "lib/tprof-mpi", "include/tprof.h"]

    def cmake_args(self):
        return [
            self.define("TPROF_TESTS", False),
            self.define("TPROF_LINK_IN", False),
            self.define("TPROF_CHARTJS", str(CHECKOUT / "build/chartjs/chart.js")),
            self.define("TPROF_LIBUNWIND_SOURCE", str(CHECKOUT / "build/libunwind")),
            self.define("TPROF_CUDA_INCLUDE", self.spec["cuda"].prefix.include),
            self.define("TPROF_NCCL_INCLUDE", self.spec["nccl"].prefix.include),
        ]

    @run_after("install")
    def write_no_folders_into_them(self):
        """Spack's compiler writes where its libraries are into all that it links. These go into the
        processes of others, or load the libraries of others, and need none but glibc."""
        for name in ("libtprof.so", "tprof-node", "tprof-mpi"):
            delete_rpath(join_path(self.prefix.lib, name))

    def setup_run_environment(self, env):
        env.prepend_path("PYTHONPATH", self.prefix.share.tprof)  # tprof.py
