from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class JigsawTrain(CMakePackage, CudaPackage):
    """Trains models on samples too large for one processor, cut over MPI ranks."""

    homepage = "https://arxiv.org/abs/2507.05753"
    license("Apache-2.0")

    # No address to fetch from is public yet: a checkout is built (packaging/README.md).
    version("main", branch="main")

    variant("grib", default=False, description="Read GRIB files, through ecCodes")
    variant("cuda", default=False, description="CUDA kernels")
    variant("cudnn", default=True, when="+cuda", description="Convolutions by cuDNN")
    variant("nccl", default=True, when="+cuda", description="Collectives between GPUs by NCCL")
    variant("tests", default=False, description="Build the tests; spack install --test=root runs them")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi")
    depends_on("hdf5@1.10.5:")
    depends_on("netcdf-c@4.9:")
    depends_on("onednn@2.6:")
    depends_on("zlib-api")
    depends_on("c-blosc")
    depends_on("libdeflate")
    depends_on("zstd")
    depends_on("xxhash")
    depends_on("cli11@2:")
    depends_on("nlohmann-json@3.11:")
    depends_on("eccodes@2.28:", when="+grib")
    depends_on("googletest", when="+tests")
    depends_on("cuda@12.5:", when="+cuda")
    # Older ones have kernels whose results are wrong.
    depends_on("cudnn@9.18:", when="+cudnn")
    depends_on("nccl@2.26.2:", when="+nccl")

    requires("target=x86_64:", msg="Kernels of the CPU are for x86-64")
    conflicts("%gcc@:11", msg="C++20 as of GCC 12 is needed")
    conflicts("cuda_arch=none", when="+cuda", msg="Name the GPUs, for example cuda_arch=80,90")
    for arch in CudaPackage.cuda_arch_values:
        if int(arch.rstrip("af")) < 80:
            conflicts(f"cuda_arch={arch}", when="+cuda", msg="GPUs of compute capability 8.0 and above are needed")
        else:
            depends_on(f"nccl cuda_arch={arch}", when=f"+nccl cuda_arch={arch}")

    generator("ninja")

    def cmake_args(self):
        arguments = [
            self.define_from_variant("JIGSAW_GRIB", "grib"),
            self.define_from_variant("JIGSAW_CUDA", "cuda"),
            self.define_from_variant("JIGSAW_TESTS", "tests"),
            self.define("JIGSAW_BENCHMARKS", False),
        ]
        if self.spec.satisfies("+cuda"):
            arguments += [
                self.define_from_variant("JIGSAW_CUDNN", "cudnn"),
                self.define_from_variant("JIGSAW_NCCL", "nccl"),
                self.define("CMAKE_CUDA_ARCHITECTURES", self.spec.variants["cuda_arch"].value),
            ]
        return arguments
