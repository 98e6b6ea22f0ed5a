#pragma once
#include <cuda_runtime_api.h>

// What cuDNN's frontend asks the current GPU, of an H100. Included by one source of a test.

extern "C" cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
extern "C" cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  properties->major = 9;
  return cudaSuccess;
}
