#include "support/fake_nccl/launches.h"

#include <utility>

#include "base/text.h"
#include "support/fake_cuda/devices.h"

namespace jigsaw::testing::fake_nccl {

namespace {

using fake_cuda::mutex;

thread_local int group_depth = 0;
thread_local std::vector<std::shared_ptr<Launch>> group;

template <typename T>
void add_as(Bytes& sum, const std::byte* values) {
  auto* const to = reinterpret_cast<T*>(sum.data());
  for (std::size_t i = 0; i < sum.size() / sizeof(T); ++i) to[i] += reinterpret_cast<const T*>(values)[i];
}

/// One call between ncclGroupStart and ncclGroupEnd, or alone.
ncclResult_t call(const std::shared_ptr<Launch>& launch) {
  const std::lock_guard lock(mutex());
  for (const auto* parts : {&launch->sends, &launch->receives}) {
    for (const Part& part : *parts) {
      if (part.bytes() > 0 && !fake_cuda::is_device_memory(part.memory)) return ncclInvalidArgument;
      if (part.peer < 0 || part.peer >= ranks_of(*launch->comm)) return ncclInvalidArgument;
    }
  }
  if (group_depth == 0) return issue(launch);
  for (const auto& other : group) {
    if (other->comm != launch->comm || other->kind != Kind::kMessages || launch->kind != Kind::kMessages)
      continue;
    for (Part& part : launch->sends) other->sends.push_back(std::move(part));
    for (Part& part : launch->receives) other->receives.push_back(std::move(part));
    return ncclSuccess;
  }
  group.push_back(launch);
  return ncclSuccess;
}

Part part_of(int peer, const void* memory, std::size_t count, ncclDataType_t type) {
  return {peer, static_cast<std::byte*>(const_cast<void*>(memory)), count, type, {}};
}

ncclResult_t call_collective(Kind kind, int root, const void* from, std::size_t sent, void* to,
                             std::size_t received, ncclDataType_t type, ncclComm_t comm,
                             cudaStream_t stream) {
  auto launch = std::make_shared<Launch>();
  launch->comm = comm;
  launch->stream = stream;
  launch->kind = kind;
  launch->root = root;
  launch->sends.push_back(part_of(rank_of(*comm), from, sent, type));
  launch->receives.push_back(part_of(rank_of(*comm), to, received, type));
  return call(launch);
}

std::size_t count_of(const FakeComm& comm) {
  return static_cast<std::size_t>(ranks_of(comm));
}

}  // namespace

void add(ncclDataType_t type, Bytes& sum, const std::byte* values) {
  if (type == ncclFloat64) add_as<double>(sum, values);
  if (type == ncclFloat32) add_as<float>(sum, values);
}

bool in_group() {
  return group_depth > 0;
}

std::string name_of(const Launch& launch) {
  return concat("a launch of NCCL on rank ", rank_of(*launch.comm));
}

void put(const std::shared_ptr<Launch>& launch) {
  launch->kept = fake_cuda::share(launch->stream);
  fake_cuda::put_when_ready(
      launch->stream, name_of(*launch), [launch] { return run_launch(*launch); }, &launch->number);
}

void end_init(ncclComm_t*& place, ncclComm_t comm) {
  if (place != nullptr) *std::exchange(place, nullptr) = comm;
}

void record_launch(const Launch& launch, const std::function<void(cudaStream_t)>& put_again,
                   ncclResult_t& error, std::string& words) {
  const cudaError_t status = fake_cuda::record(launch.stream, name_of(launch), put_again, true);
  if (status == cudaSuccess || error != ncclSuccess) return;
  error = ncclUnhandledCudaError;
  words = concat("Cuda failure ", static_cast<int>(status), " '", cudaGetErrorString(status), "'");
}

}  // namespace jigsaw::testing::fake_nccl

using namespace jigsaw::testing::fake_nccl;  // NOLINT(google-build-using-namespace)

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSystemError:
      return "unhandled system error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "internal error";
  }
}

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (group_depth == 0) return ncclInvalidUsage;
  if (--group_depth > 0) return ncclSuccess;
  std::unique_lock lock(jigsaw::testing::fake_cuda::mutex());
  await_aborts(lock);
  ncclResult_t worst = ncclSuccess;
  for (const auto& launch : std::exchange(group, {})) {
    const ncclResult_t result = issue(launch);
    if (worst == ncclSuccess || result != ncclInProgress) worst = result;
  }
  return worst;
}
ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  auto launch = std::make_shared<Launch>();
  launch->comm = comm;
  launch->stream = stream;
  launch->sends.push_back(part_of(peer, from, count, type));
  return call(launch);
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  auto launch = std::make_shared<Launch>();
  launch->comm = comm;
  launch->stream = stream;
  launch->receives.push_back(part_of(peer, to, count, type));
  return call(launch);
}
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return call_collective(Kind::kAllGather, 0, from, count, to, count * count_of(*comm), type, comm, stream);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t, ncclComm_t comm, cudaStream_t stream) {
  return call_collective(Kind::kReduceScatter, 0, from, count * count_of(*comm), to, count, type, comm,
                         stream);
}
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t,
                           ncclComm_t comm, cudaStream_t stream) {
  return call_collective(Kind::kAllReduce, 0, from, count, to, count, type, comm, stream);
}
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return call_collective(Kind::kBroadcast, root, from, count, to, count, type, comm, stream);
}
