from spack.package import *


class JigsawTrain(CMakePackage, CudaPackage):
    """Trains models on samples too large for one processor, cut over MPI ranks."""

    homepage = "https://arxiv.org/abs/2507.05753"
    license("Apache-2.0")

    # A checkout: spack develop, or spack install jigsaw-train@main with git = its address.
    version("main", branch="main")

    variant("cuda", default=False, description="CUDA kernels")
    variant("tests", default=False, description="Build and run the tests")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi")
    depends_on("hdf5@1.10:")
    depends_on("netcdf-c@4.9:")
    depends_on("onednn@2.6:")
    depends_on("zlib-api")
    depends_on("c-blosc")
    depends_on("libdeflate")
    depends_on("zstd")
    depends_on("xxhash")
    depends_on("cli11@2:")
    depends_on("nlohmann-json@3.11:")
    depends_on("googletest", when="+tests")
    depends_on("cuda@12.5:", when="+cuda")
    conflicts("%gcc@:11", msg="C++20 as of GCC 12 is needed")

    generator("ninja")

    def cmake_args(self):
        arguments = [
            self.define_from_variant("JIGSAW_CUDA", "cuda"),
            self.define_from_variant("JIGSAW_TESTS", "tests"),
            self.define("JIGSAW_BENCHMARKS", False),
        ]
        if self.spec.satisfies("+cuda"):
            arguments.append(self.define("CMAKE_CUDA_ARCHITECTURES", self.spec.variants["cuda_arch"].value))
        return arguments
