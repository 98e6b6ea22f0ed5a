# jigsaw_test(NAME SOURCES ... ROOMS ... LABELS ... [LIBRARIES ...] [ON_DEVICE])
# One GoogleTest executable and one ctest entry. As root, with more ranks than cores, and in
# containers Open MPI must be told so; since tests run beside each other, ranks and threads that wait
# for others give way. ON_DEVICE: one more entry NAME_on_device, label device, runs it on a simulated device
# (tests/support/test_context.h).
#
# Time limits are there to end what hangs, not to fail what is slow. Real data are hidden: every
# test is the one that a stranger runs, but for those of jigsaw_real_data_test.
set(JIGSAW_TEST_TIMEOUT 3600)
# What is tested is compiled as it is used, the tests themselves for the compiler's time.
# GCC 12 takes members of a half initialised aggregate, whose cleanup never runs, for uninitialised at -O1.
set(JIGSAW_TEST_OPTIONS -Wno-maybe-uninitialized ${JIGSAW_SANITIZE_TESTS})
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_CXX_FLAGS_RELEASE MATCHES "-O[23]")
  list(APPEND JIGSAW_TEST_OPTIONS -O1)
endif()
# Headers that nearly all of them read, compiled once.
set(JIGSAW_TEST_HEADERS <algorithm> <cmath> <filesystem> <fstream> <functional> <map> <memory> <string> <vector>
  <gtest/gtest.h> <nlohmann/json.hpp>)
if(JIGSAW_PRECOMPILE)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/test_headers.cpp CONTENT "")
  add_library(jigsaw_test_headers OBJECT ${CMAKE_BINARY_DIR}/test_headers.cpp)
  target_compile_options(jigsaw_test_headers PRIVATE ${JIGSAW_TEST_OPTIONS})
  target_link_libraries(jigsaw_test_headers PRIVATE jigsaw_options GTest::gtest nlohmann_json::nlohmann_json)
  target_precompile_headers(jigsaw_test_headers PRIVATE ${JIGSAW_TEST_HEADERS})
endif()
# Compiles the sources of a test.
function(jigsaw_compile_test name)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_options(${name} PRIVATE ${JIGSAW_TEST_OPTIONS})
  jigsaw_unity(${name})
  if(TARGET jigsaw_test_headers)
    target_precompile_headers(${name} REUSE_FROM jigsaw_test_headers)
  endif()
endfunction()

# All ranks are on this machine: networks, whose libraries take 0.2 s of each start, are left alone.
set(JIGSAW_MPI_ENVIRONMENT OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader,tcp OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none)
set(JIGSAW_TEST_ENVIRONMENT ${JIGSAW_MPI_ENVIRONMENT} OMPI_MCA_mpi_yield_when_idle=1 OMP_WAIT_POLICY=passive
  "JIGSAW_SOURCE_DIR=${CMAKE_SOURCE_DIR}")
set(JIGSAW_NO_REAL_DATA "JIGSAW_REAL_DATA=${CMAKE_BINARY_DIR}/no_real_data")
# Jobs of Open MPI that begin and end at once are in each other's way in the folder that a user's share: each test has
# its own. The last in the environment of a test, which counts.
function(jigsaw_mpi_folder name)
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "OMPI_MCA_orte_tmpdir_base=${CMAKE_BINARY_DIR}/mpi/${name}")
endfunction()
function(jigsaw_test name)
  cmake_parse_arguments(TEST "ON_DEVICE" "" "SOURCES;ROOMS;LABELS;LIBRARIES" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  list(TRANSFORM TEST_ROOMS PREPEND jigsaw_)
  jigsaw_compile_test(${name})
  target_link_libraries(${name} PRIVATE ${TEST_ROOMS} ${TEST_LIBRARIES} jigsaw_test_device GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${TEST_LABELS}" TIMEOUT ${JIGSAW_TEST_TIMEOUT}
    ENVIRONMENT "OMP_NUM_THREADS=2;${JIGSAW_TEST_ENVIRONMENT};${JIGSAW_NO_REAL_DATA}")
  jigsaw_mpi_folder(${name})
  # Open MPI leaves memory behind in programs that these start.
  if(JIGSAW_SANITIZE MATCHES "address" AND TEST_LABELS MATCHES "e2e|fault")
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT ASAN_OPTIONS=detect_leaks=0)
  endif()
  if(JIGSAW_SANITIZE MATCHES "thread")
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT
      "TSAN_OPTIONS=suppressions='${CMAKE_SOURCE_DIR}/tests/support/tsan_suppressions.txt'")
  endif()
  if("slurm" IN_LIST TEST_LABELS)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL TRUE)
  endif()
  if(TEST_ON_DEVICE)
    jigsaw_test_again(${name}_on_device ${name} ENVIRONMENT JIGSAW_TEST_DEVICE=simulated)
    set_property(TEST ${name}_on_device APPEND PROPERTY LABELS device)
  endif()
endfunction()

# jigsaw_test_again(NAME TARGET [LIKE TEST] [ENVIRONMENT A=1 ...])
# One more ctest entry for a target that is there, with the properties of TEST (default: the one named as
# the target) and more in its environment.
function(jigsaw_test_again name target)
  cmake_parse_arguments(AGAIN "" "LIKE" "ENVIRONMENT" ${ARGN})
  if(NOT AGAIN_LIKE)
    set(AGAIN_LIKE ${target})
  endif()
  add_test(NAME ${name} COMMAND ${target})
  # A pattern that no test has any more.
  set_tests_properties(${name} PROPERTIES FAIL_REGULAR_EXPRESSION "Running 0 tests")
  foreach(property LABELS TIMEOUT ENVIRONMENT RUN_SERIAL)
    get_test_property(${AGAIN_LIKE} ${property} value)
    if(property STREQUAL ENVIRONMENT)
      list(APPEND value ${AGAIN_ENVIRONMENT})
    endif()
    if(NOT value STREQUAL "NOTFOUND")
      set_property(TEST ${name} PROPERTY ${property} ${value})
    endif()
  endforeach()
  jigsaw_mpi_folder(${name})
endfunction()

# Without a filter all tests run: of an empty GTEST_FILTER none would.
macro(jigsaw_filter variable)
  if("${${variable}}" STREQUAL "")
    set(${variable} "*")
  endif()
endmacro()

# jigsaw_gpu_test(NAME LIKE TEST ROOMS ... [LIBRARIES ...] [OBJECTS TARGET] [FILTER PATTERN] [QUICK PATTERN])
# The tests of TEST, or else those that TARGET holds, are in the programs cuda_tests and fake_cuda_tests, too
# (jigsaw_link_cuda_tests). In a build with CUDA kernels one more ctest entry, label gpu: those that match, on the first GPU;
# skipped where there is none.
function(jigsaw_gpu_test name)
  cmake_parse_arguments(GPU "" "LIKE;OBJECTS;FILTER;QUICK" "ROOMS;LIBRARIES" ${ARGN})
  jigsaw_filter(GPU_FILTER)
  if(NOT GPU_QUICK)
    set(GPU_QUICK ${GPU_FILTER})
  endif()
  if(NOT GPU_OBJECTS)
    set(GPU_OBJECTS ${GPU_LIKE})
  endif()
  list(TRANSFORM GPU_ROOMS PREPEND jigsaw_)
  set_property(GLOBAL APPEND PROPERTY JIGSAW_CUDA_TESTS_OBJECTS $<TARGET_OBJECTS:${GPU_OBJECTS}>)
  set_property(GLOBAL APPEND PROPERTY JIGSAW_CUDA_TESTS_LIBRARIES ${GPU_ROOMS} ${GPU_LIBRARIES})
  set_property(GLOBAL APPEND_STRING PROPERTY JIGSAW_CUDA_TESTS_LIST "${name} ${GPU_FILTER} ${GPU_QUICK}\n")
  if(JIGSAW_CUDA)
    jigsaw_test_again(${name} cuda_tests LIKE ${GPU_LIKE}
      ENVIRONMENT JIGSAW_TEST_DEVICE=cuda GTEST_FILTER=${GPU_FILTER})
    set_tests_properties(${name} PROPERTIES LABELS gpu RUN_SERIAL TRUE
      SKIP_REGULAR_EXPRESSION "there is no CUDA device 0: this machine has 0;no GPU here;built without NCCL")
  endif()
endfunction()

# One program of all tests of label gpu, which is much smaller than one for each: cuda_tests with CUDA's kernels, and
# fake_cuda_tests with these compiled for the host and the fake runtime (tests/support/fake_cuda). cuda_tests.txt lists
# what ctest runs of them: a name, the filter on a GPU, and on the fake runtime (or "none").
function(jigsaw_link_cuda_tests)
  get_property(objects GLOBAL PROPERTY JIGSAW_CUDA_TESTS_OBJECTS)
  get_property(libraries GLOBAL PROPERTY JIGSAW_CUDA_TESTS_LIBRARIES)
  get_property(tests GLOBAL PROPERTY JIGSAW_CUDA_TESTS_LIST)
  list(REMOVE_DUPLICATES objects)
  list(REMOVE_DUPLICATES libraries)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/cuda_tests.txt CONTENT "${tests}" @ONLY)
  add_executable(fake_cuda_tests ${objects})
  target_link_libraries(fake_cuda_tests PRIVATE jigsaw_fake_cuda ${libraries} jigsaw_test_device GTest::gtest_main)
  if(JIGSAW_CUDA)
    add_executable(cuda_tests ${objects})
    target_link_libraries(cuda_tests PRIVATE $<TARGET_NAME_IF_EXISTS:jigsaw_cuda> $<TARGET_NAME_IF_EXISTS:jigsaw_cuda_nccl>
      ${libraries} jigsaw_test_device GTest::gtest_main)
  endif()
endfunction()

# What kernels that are compiled for the host are compiled with, so that tests/support/fake_cuda sees which memory they touch,
# whether its addresses are aligned, and indices beyond arrays of fixed size; unless a sanitizer is there for its own sake.
if(NOT JIGSAW_SANITIZE)
  set(JIGSAW_SEEN_ACCESSES -fsanitize=thread --param=tsan-instrument-func-entry-exit=0 -fsanitize=alignment,bounds-strict)
endif()

# jigsaw_fake_cuda_test(NAME LIKE TEST ROOMS ... [SOURCES ...] [LIBRARIES ...] [FILTER PATTERN])
# One more executable out of the objects of TEST and more sources, with CUDA's kernels compiled for the host and the fake runtime
# (tests/support/fake_cuda), and one ctest entry for it (for its tests that match FILTER), label device.
function(jigsaw_fake_cuda_test name)
  cmake_parse_arguments(FAKE "" "LIKE;FILTER" "ROOMS;SOURCES;LIBRARIES" ${ARGN})
  jigsaw_filter(FAKE_FILTER)
  list(TRANSFORM FAKE_ROOMS PREPEND jigsaw_)
  add_executable(${name} $<TARGET_OBJECTS:${FAKE_LIKE}> ${FAKE_SOURCES})
  jigsaw_compile_test(${name})
  target_include_directories(${name} BEFORE PRIVATE ${CMAKE_SOURCE_DIR}/tests/support/fake_cuda)
  target_link_libraries(${name} PRIVATE jigsaw_fake_cuda ${FAKE_ROOMS} ${FAKE_LIBRARIES} jigsaw_test_device GTest::gtest_main)
  jigsaw_test_again(${name} ${name} LIKE ${FAKE_LIKE}
    ENVIRONMENT JIGSAW_TEST_DEVICE=cuda GTEST_FILTER=${FAKE_FILTER})
  set_tests_properties(${name} PROPERTIES LABELS device RUN_SERIAL FALSE)
endfunction()

# jigsaw_cuda_tests(NAME LIKE TEST ROOMS ... [LIBRARIES ...] [FILTER PATTERN] [GPU_FILTER PATTERN] [QUICK PATTERN])
# Both: NAME_fake_cuda_test, label device, and, in a build with CUDA kernels, NAME_cuda_test, which may take more of the tests.
# These get their contexts by tests/support/test_context.h.
function(jigsaw_cuda_tests name)
  cmake_parse_arguments(CUDA "" "LIKE;FILTER;GPU_FILTER;QUICK" "ROOMS;LIBRARIES" ${ARGN})
  jigsaw_filter(CUDA_FILTER)
  if(NOT CUDA_QUICK)
    set(CUDA_QUICK ${CUDA_FILTER})
  endif()
  if(NOT CUDA_GPU_FILTER)
    set(CUDA_GPU_FILTER ${CUDA_FILTER})
  endif()
  jigsaw_gpu_test(${name}_cuda_test LIKE ${CUDA_LIKE} ROOMS ${CUDA_ROOMS} LIBRARIES ${CUDA_LIBRARIES}
    FILTER ${CUDA_GPU_FILTER} QUICK ${CUDA_QUICK})
  jigsaw_test_again(${name}_fake_cuda_test fake_cuda_tests LIKE ${CUDA_LIKE}
    ENVIRONMENT JIGSAW_TEST_DEVICE=cuda GTEST_FILTER=${CUDA_FILTER})
  set_tests_properties(${name}_fake_cuda_test PROPERTIES LABELS device RUN_SERIAL FALSE)
endfunction()

# jigsaw_fake_nccl_test(NAME LIKE TEST ROOMS ... [FILTER])
# The same, with ranks on devices of their own and NCCL between them (tests/comm/nccl/nccl_test_ranks.cpp).
function(jigsaw_fake_nccl_test name)
  jigsaw_fake_cuda_test(${name} ${ARGN} SOURCES ${CMAKE_SOURCE_DIR}/tests/comm/nccl/nccl_test_ranks.cpp)
  target_include_directories(${name} BEFORE PRIVATE ${CMAKE_SOURCE_DIR}/tests/support/fake_nccl)
  target_link_libraries(${name} PRIVATE jigsaw_nccl_on_host jigsaw_fake_nccl)
endfunction()

# jigsaw_real_data_test(NAME TARGET [FILTER])
# One more ctest entry for a target that is there, label real: its tests (those that match FILTER) on
# the data in the folder that JIGSAW_REAL_DATA names, by default ../shared/data; none where it is not.
function(jigsaw_real_data_test name target)
  set(folder ${CMAKE_SOURCE_DIR}/../shared/data)
  if(DEFINED ENV{JIGSAW_REAL_DATA})
    set(folder $ENV{JIGSAW_REAL_DATA})
  endif()
  if(NOT IS_DIRECTORY ${folder})
    return()
  endif()
  set(filter "*")
  if(ARGC GREATER 2)
    set(filter ${ARGV2})
  endif()
  add_test(NAME ${name} COMMAND ${target} --gtest_filter=${filter})
  set_tests_properties(${name} PROPERTIES LABELS real COST 150 TIMEOUT ${JIGSAW_TEST_TIMEOUT}
    ENVIRONMENT "OMP_NUM_THREADS=2;${JIGSAW_TEST_ENVIRONMENT};JIGSAW_REAL_DATA=${folder}")
  jigsaw_mpi_folder(${name})
endfunction()

# jigsaw_mpi_test(NAME SOURCES ... ROOMS ... RANKS 2 3 4 [ENVIRONMENT A=1 ...])
# One GoogleTest executable whose tests run on all ranks at once (tests/comm/ranks.h), and one ctest entry
# NAME_nN, label mpi, for each number of ranks.
function(jigsaw_mpi_test name)
  cmake_parse_arguments(TEST "" "" "SOURCES;ROOMS;RANKS;ENVIRONMENT" ${ARGN})
  add_executable(${name} ${TEST_SOURCES} ${CMAKE_SOURCE_DIR}/tests/comm/mpi_main.cpp)
  list(TRANSFORM TEST_ROOMS PREPEND jigsaw_)
  jigsaw_compile_test(${name})
  target_link_libraries(${name} PRIVATE ${TEST_ROOMS} jigsaw_comm jigsaw_kernels jigsaw_test_device GTest::gtest)
  jigsaw_mpi_run(${name} ${name} RANKS ${TEST_RANKS} ENVIRONMENT ${TEST_ENVIRONMENT})
endfunction()

# jigsaw_mpi_run(NAME TARGET RANKS 2 3 4 [ENVIRONMENT A=1 ...])
# More ctest entries NAME_nN for a target that is there.
function(jigsaw_mpi_run name target)
  cmake_parse_arguments(RUN "" "" "RANKS;ENVIRONMENT" ${ARGN})
  foreach(ranks ${RUN_RANKS})
    add_test(NAME ${name}_n${ranks}
      COMMAND ${MPIEXEC_EXECUTABLE} --oversubscribe --bind-to none -n ${ranks} $<TARGET_FILE:${target}>)
    set_tests_properties(${name}_n${ranks} PROPERTIES LABELS mpi TIMEOUT ${JIGSAW_TEST_TIMEOUT}
      ENVIRONMENT "OMP_NUM_THREADS=1;${JIGSAW_TEST_ENVIRONMENT};${JIGSAW_NO_REAL_DATA};${RUN_ENVIRONMENT}")
    jigsaw_mpi_folder(${name}_n${ranks})
  endforeach()
endfunction()
