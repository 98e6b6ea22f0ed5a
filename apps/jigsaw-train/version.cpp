#include "version.h"

#define OMPI_SKIP_MPICXX 1  // the C interface alone
#include <hdf5.h>
#include <mpi.h>
#include <netcdf.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <utility>

#include "base/text.h"
#include "commit.h"
#include "files/grib.h"
#include "kernels/cuda_context.h"
#include "nccl/nccl_communicator.h"
#include "task/device.h"

namespace jigsaw {

namespace {

/// "Open MPI v4.1.4" of "Open MPI v4.1.4, package: …"; others' texts have several lines.
std::string mpi_version() {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  MPI_Get_library_version(text.data(), &length);  // also before MPI_Init
  text.resize(static_cast<std::size_t>(length));
  return text.substr(0, text.find_first_of(",\n"));
}

std::string hdf5_version() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return concat(major, ".", minor, ".", release);
}

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return concat(version->major, ".", version->minor, ".", version->patch);
}

/// "4.9.0" of "4.9.0 of Oct 10 2022 15:57:23 $".
std::string netcdf_version() {
  const std::string text = nc_inq_libvers();
  return text.substr(0, text.find(' '));
}

/// "12.8" of 12080.
std::string cuda_version(int number) {
  return concat(number / 1000, ".", number % 1000 / 10);
}

/// What computes: "cpu, no cuda".
std::string backends(int cuda) {
  return cuda > 0 ? concat("cpu, cuda ", cuda_version(cuda)) : "cpu, no cuda";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> versions() {
  const int cuda =
      cuda_runtime_version();  // the machine's driver, which takes seconds to start, is not asked
  std::vector<std::pair<std::string, std::string>> all = {{"jigsaw-train", JIGSAW_VERSION},
                                                          {"commit", kCommit},
                                                          {"compiler", concat("GCC ", __VERSION__)},
                                                          {"backends", backends(cuda)},
                                                          {"mpi", mpi_version()},
                                                          {"oneDNN", onednn_version()},
                                                          {"hdf5", hdf5_version()},
                                                          {"netcdf", netcdf_version()}};
  if (const std::string eccodes = eccodes_version(); !eccodes.empty()) all.emplace_back("eccodes", eccodes);
  if (cuda > 0) all.emplace_back("cuda", cuda_version(cuda));
  if (const CudnnLibrary cudnn = cudnn_library(); cudnn.built)
    all.emplace_back("cudnn", library_version(cudnn.version));
  if (const NcclLibrary nccl = nccl_library(); nccl.built)
    all.emplace_back("nccl", library_version(nccl.version));
  return all;
}

std::string version_text() {
  std::string text;
  for (const auto& [name, version] : versions()) text += concat(text.empty() ? "" : "\n", name, " ", version);
  return text;
}

}  // namespace jigsaw
