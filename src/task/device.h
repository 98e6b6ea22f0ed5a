#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "array/context.h"
#include "array/dtype.h"
#include "comm/communicator.h"
#include "kernels/cuda_context.h"
#include "nccl/nccl_communicator.h"
#include "parallel/cost_model.h"
#include "task/configuration.h"

namespace jigsaw::inline task {

/// The types that a precision stands for.
struct PrecisionTypes {
  DType compute;  ///< activations
  DType master;   ///< stored parameters, gradients, optimizer
};
PrecisionTypes types_of(Precision precision);

/// What says that this process is to have GPUs, also where CUDA sees none.
struct GpuSigns {
  std::string allotted;                ///< what SLURM says that it gave: "SLURM_JOB_GPUS is \"0,1\""
  std::optional<std::string> visible;  ///< CUDA_VISIBLE_DEVICES, where it is set
  bool driver = false;                 ///< NVIDIA's is loaded
};
/// Of the environment and the machine.
/// @param sys  where Linux tells of drivers.
GpuSigns gpu_signs(const std::string& sys = "/sys");

/// What "auto" stands for on a machine, and a sentence for the user where that is not what one may expect.
struct ChosenDevice {
  bool cuda = false;
  std::string remark;
  bool warns = false;  ///< the remark, of GPUs that are to be there and are not seen, or not used
};
/// @throws ConfigError  when CUDA is asked for and not built, or has no device here; when the machine has
/// GPUs whose driver is too old, or SLURM gave the job some and none is seen, whatever was asked for but the
/// processor.
ChosenDevice choose_device(DeviceChoice device, const TrainOptions& train, const CudaMachine& machine,
                           const GpuSigns& signs = {});

/// "9.19.0" of 91900, as cuDNN and NCCL count their versions. Old ones count thousands: 8907 is "8.9.7".
std::string library_version(int version);

/// Whether ranks may share a GPU: NCCL 2.30 and newer lets them where NCCL_MULTI_RANK_GPU_ENABLE is 1.
bool may_share_gpus(const NcclLibrary& nccl);

/// What is wrong with the libraries here for a run on GPUs; "" for nothing.
std::string unfit_library(const CudnnLibrary& cudnn, const NcclLibrary& nccl);

/// The UUIDs of the GPUs that this process sees, in CUDA's order.
std::vector<std::string> visible_gpus();

/// Which of the GPUs that it sees each rank takes, whatever launchers hide or turn round: the first that no
/// lower rank of its machine has taken. Where all are taken, round and round by the rank's number there.
/// @param machines  of the ranks.
/// @param seen      the UUIDs that each sees, in its order.
std::vector<int> chosen_gpus(const std::vector<std::string>& machines,
                             const std::vector<std::vector<std::string>>& seen);
/// The one of this rank. Collective; 0 for a rank that sees none.
int choose_gpu(Communicator& world, const std::vector<std::string>& seen);

/// How arrays of GPUs travel between ranks.
enum class Carrier : std::uint8_t {
  kHost,  ///< by way of the host's memory, or there is no other rank
  kNccl,
  kMpi  ///< see MpiSession::cuda_aware()
};

/// The context of one rank: what computes (`device`) with which kernels (fp64: the reference ones).
///
/// @param train           says the precision, and whether a GPU may take TensorFloat-32.
/// @param threads         that a rank on the processor may use.
/// @param gpu              the number of one that this process sees, counted round and round.
/// @param chosen_device    set to what choose_device() said; may be null.
/// @param carrier          what the GPU's library and memory are to be fit for.
/// @throws ConfigError     as choose_device() does; on a GPU with what unfit_library() says.
Context make_context(DeviceChoice device, const TrainOptions& train, int threads, int gpu,
                     ChosenDevice* chosen_device = nullptr, Carrier carrier = Carrier::kHost);

/// The constants by which the blocks of a model are planned, see cost_model(). Collective.
///
/// @param ranks  of the model: those of `world`, or as many as are planned for, with as many on each machine
///               as this one has GPUs.
CostModel plan_costs(Communicator& world, int ranks, const TrainOptions& train);

/// What carries collectives between ranks that compute on the context of `mpi`: NCCL between GPUs where the
/// build has it and there are several, which is told how many ranks share a node, or else `mpi` itself.
/// Collective.
std::unique_ptr<Communicator> connect_devices(std::unique_ptr<Communicator> mpi, Reduction reduction);

/// What a rank computes on, as others are to know it.
struct RankDevice {
  std::string kind;   ///< "the processor", or a GPU's name, capability and versions of CUDA and its libraries
  std::string place;  ///< the GPU's PCI address and machine; empty for the processor
  bool shared = false;  ///< may_share_gpus()
  std::string sees;     ///< "2 GPUs on node7"
  std::string uuid;     ///< of the GPU, or the slice of it (MIG)
};
/// @param context  the last one that this thread made.
RankDevice rank_device(const Context& context);

/// Throws the same ConfigError on all ranks unless all compute on one kind of device, each on a GPU of its
/// own if not all may share them; slices of one GPU (MIG) count as GPUs where NCCL does not connect them,
/// which refuses two of one. Collective.
void require_like_devices(Communicator& world, const RankDevice& mine, Carrier carrier);

}  // namespace jigsaw::inline task
