# jigsaw_test(NAME SOURCES ... ROOMS ... LABELS ... [TIMEOUT seconds] [LIBRARIES ...])
# One GoogleTest executable and one ctest entry with a time limit. Tests that start ranks or jobs
# run alone; as root, with more ranks than cores, and in containers Open MPI must be told so.
# The target gpu_tests builds what is labelled gpu.
set(JIGSAW_MPI_ENVIRONMENT OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none)
add_custom_target(gpu_tests)
function(jigsaw_test name)
  cmake_parse_arguments(TEST "" "TIMEOUT" "SOURCES;ROOMS;LABELS;LIBRARIES" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 120)
  endif()
  add_executable(${name} ${TEST_SOURCES})
  list(TRANSFORM TEST_ROOMS PREPEND jigsaw_)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${TEST_ROOMS} ${TEST_LIBRARIES} GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${TEST_LABELS}" TIMEOUT ${TEST_TIMEOUT}
    ENVIRONMENT "OMP_NUM_THREADS=2;JIGSAW_SOURCE_DIR=${CMAKE_SOURCE_DIR};${JIGSAW_MPI_ENVIRONMENT}")
  if(TEST_LABELS MATCHES "mpi|e2e|fault|slurm|gpu")
    set_tests_properties(${name} PROPERTIES RUN_SERIAL TRUE)
  endif()
  if("gpu" IN_LIST TEST_LABELS)
    add_dependencies(gpu_tests ${name})
  endif()
endfunction()

# jigsaw_test_again(NAME TARGET ENVIRONMENT A=1 ...)
# One more ctest entry for a target that is there, with more in its environment.
function(jigsaw_test_again name target)
  cmake_parse_arguments(AGAIN "" "" "ENVIRONMENT" ${ARGN})
  add_test(NAME ${name} COMMAND ${target})
  foreach(property LABELS TIMEOUT ENVIRONMENT RUN_SERIAL)
    get_test_property(${target} ${property} value)
    if(property STREQUAL ENVIRONMENT)
      list(APPEND value ${AGAIN_ENVIRONMENT})
    endif()
    if(NOT value STREQUAL "NOTFOUND")
      set_property(TEST ${name} PROPERTY ${property} ${value})
    endif()
  endforeach()
endfunction()

# jigsaw_mpi_test(NAME SOURCES ... ROOMS ... RANKS 2 3 4 [TIMEOUT seconds] [ENVIRONMENT A=1 ...])
# One GoogleTest executable whose tests run on all ranks at once (tests/comm/ranks.h), and one ctest entry
# NAME_nN, label mpi, for each number of ranks.
function(jigsaw_mpi_test name)
  cmake_parse_arguments(TEST "" "TIMEOUT" "SOURCES;ROOMS;RANKS;ENVIRONMENT" ${ARGN})
  add_executable(${name} ${TEST_SOURCES} ${CMAKE_SOURCE_DIR}/tests/comm/mpi_main.cpp)
  list(TRANSFORM TEST_ROOMS PREPEND jigsaw_)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${TEST_ROOMS} jigsaw_comm GTest::gtest)
  jigsaw_mpi_run(${name} ${name} RANKS ${TEST_RANKS} TIMEOUT ${TEST_TIMEOUT} ENVIRONMENT ${TEST_ENVIRONMENT})
endfunction()

# jigsaw_mpi_run(NAME TARGET RANKS 2 3 4 [TIMEOUT seconds] [ENVIRONMENT A=1 ...])
# More ctest entries NAME_nN for a target that is there.
function(jigsaw_mpi_run name target)
  cmake_parse_arguments(RUN "" "TIMEOUT" "RANKS;ENVIRONMENT" ${ARGN})
  if(NOT RUN_TIMEOUT)
    set(RUN_TIMEOUT 120)
  endif()
  foreach(ranks ${RUN_RANKS})
    add_test(NAME ${name}_n${ranks}
      COMMAND ${MPIEXEC_EXECUTABLE} --oversubscribe --bind-to none -n ${ranks} $<TARGET_FILE:${target}>)
    set_tests_properties(${name}_n${ranks} PROPERTIES LABELS mpi TIMEOUT ${RUN_TIMEOUT} RUN_SERIAL TRUE
      ENVIRONMENT "OMP_NUM_THREADS=1;${JIGSAW_MPI_ENVIRONMENT};JIGSAW_SOURCE_DIR=${CMAKE_SOURCE_DIR};${RUN_ENVIRONMENT}")
  endforeach()
endfunction()
