#pragma once
// The part of cuDNN that this program uses besides plans, for machines without a GPU: see fake_cuda.h. Plans
// are made by cudnn.cpp.
#include <cstddef>

#include "cuda_runtime_api.h"

#define CUDNN_MAJOR 9

enum cudnnStatus_t {
  CUDNN_STATUS_SUCCESS = 0,
  CUDNN_STATUS_NOT_INITIALIZED = 1001,
  CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH = 1002,
  CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED = 1008,
  CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING = 3008,
  CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE = 3009,
  CUDNN_STATUS_INTERNAL_ERROR = 4000,
  CUDNN_STATUS_EXECUTION_FAILED = 5000
};

using cudnnHandle_t = struct FakeCudnn*;

const char* cudnnGetErrorString(cudnnStatus_t status);
void cudnnGetLastErrorString(char* message, std::size_t size);
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle);
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle);
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream);
