#pragma once
#include <gtest/gtest.h>

#include <string>

#include "array/context.h"

namespace jigsaw::testing {

/// The backends that run anywhere: INSTANTIATE_TEST_SUITE_P(Backends, X, testing::host_backends(),
/// testing::backend_name).
inline auto host_backends() {
  return ::testing::Values(Backend::kReference, Backend::kCpu);
}

inline std::string backend_name(const ::testing::TestParamInfo<Backend>& parameter) {
  return parameter.param == Backend::kCpu ? "cpu" : "reference";
}

}  // namespace jigsaw::testing
