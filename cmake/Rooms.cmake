# jigsaw_room(NAME [COLD] SOURCES ... [DEPENDS rooms ...] [LIBRARIES targets ...] [PUBLIC_LIBRARIES targets ...] [PRECOMPILE headers ...])
#
# One static library per folder NAME of src/ or of a folder there (src/io/NAME). Its headers are
# included as "NAME/header.h" through a folder that holds nothing but NAME, so that a room cannot
# include what it does not depend on: the compiler checks the direction of every include.
# PRECOMPILE: headers of other projects that most of its sources read. COLD: it has no loops over the values of
# fields, and is compiled in less time for it.
# -Wno-restrict: GCC 12 warns of std::string's own operator+ (GCC bug 105651).
set(JIGSAW_FLAGS -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(JIGSAW_WERROR)
  list(APPEND JIGSAW_FLAGS -Werror)
endif()
# What a sanitizer finds ends the program. With JIGSAW_SANITIZE_ROOMS only these rooms are compiled with it, and
# linked with the others as they are; with the thread sanitizer, tests are compiled with it, too: of an inline
# function that both have, such as a std::shared_ptr's release, the linker takes the test's.
set(JIGSAW_SANITIZE_FLAGS "")
set(JIGSAW_SANITIZE_ALL "")
set(JIGSAW_SANITIZE_TESTS "")
if(JIGSAW_SANITIZE)
  # GCC 12 warns there of the code of std::string and std::regex.
  set(JIGSAW_SANITIZE_FLAGS -fsanitize=${JIGSAW_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  if(NOT JIGSAW_SANITIZE_ROOMS)
    set(JIGSAW_SANITIZE_ALL ${JIGSAW_SANITIZE_FLAGS})
  elseif(JIGSAW_SANITIZE MATCHES "thread")
    set(JIGSAW_SANITIZE_TESTS ${JIGSAW_SANITIZE_FLAGS} -g1)
  endif()
endif()

add_library(jigsaw_options INTERFACE)
target_compile_options(jigsaw_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:${JIGSAW_FLAGS} ${JIGSAW_SANITIZE_ALL}>)
target_link_options(jigsaw_options INTERFACE ${JIGSAW_SANITIZE_FLAGS})
target_link_libraries(jigsaw_options INTERFACE Threads::Threads)

# Headers that most sources read, compiled once for each target. Compiler caches do better without.
set(JIGSAW_PRECOMPILED <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <limits> <map> <memory> <optional> <span> <string>
  <string_view> <utility> <vector>)
function(jigsaw_precompile target)
  if(JIGSAW_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${JIGSAW_PRECOMPILED} ${ARGN})
    # GCC 12 does not know precompiled headers for the system's, and warns of std::string's own code in more words.
    foreach(warning array-bounds stringop-overflow stringop-overread)
      target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-${warning}>)
    endforeach()
  endif()
endfunction()

# -O2 takes a third longer than -O1 to compile.
function(jigsaw_cold target)
  if(CMAKE_CXX_FLAGS_RELEASE MATCHES "-O3")
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
endfunction()

# Compiles up to sixteen sources at once, for whose types GCC does not know that nobody includes them elsewhere.
function(jigsaw_unity target)
  if(JIGSAW_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# Sources that a program with objects of the same names leaves in the library: each is an object by itself.
function(jigsaw_replaceable)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# Compiles every header of the project alone: `cmake --build build --target headers`.
add_custom_target(headers)

# One source per header of a room, which includes it alone, seen as by the room itself; scripts/check.sh reads
# their commands, too.
function(jigsaw_check_headers name)
  file(GLOB_RECURSE headers RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/.. CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  if(NOT JIGSAW_CUDA)
    list(FILTER headers EXCLUDE REGEX "/cuda/")
  endif()
  set(sources "")
  foreach(header ${headers})
    cmake_path(GET header PARENT_PATH folder)
    if(NOT folder STREQUAL name AND EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/../${folder}/CMakeLists.txt)
      continue()  # of a room within this one
    endif()
    set(source ${CMAKE_BINARY_DIR}/headers/${header}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n")
    list(APPEND sources ${source})
  endforeach()
  if(sources)
    add_library(jigsaw_${name}_headers OBJECT EXCLUDE_FROM_ALL ${sources})
    target_link_libraries(jigsaw_${name}_headers PRIVATE jigsaw_${name} ${ARGN})
    target_compile_options(jigsaw_${name}_headers PRIVATE -O0)
    add_dependencies(headers jigsaw_${name}_headers)
  endif()
endfunction()

function(jigsaw_room name)
  cmake_parse_arguments(ROOM "COLD" "" "SOURCES;DEPENDS;LIBRARIES;PUBLIC_LIBRARIES;PRECOMPILE" ${ARGN})
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  if(NOT folder STREQUAL name)
    message(FATAL_ERROR "${CMAKE_CURRENT_SOURCE_DIR}: the room ${name} stands in a folder of another name")
  endif()
  set(view ${CMAKE_BINARY_DIR}/rooms/${name})
  file(MAKE_DIRECTORY ${view})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${view}/${name} SYMBOLIC)
  add_library(jigsaw_${name} STATIC ${ROOM_SOURCES})
  target_include_directories(jigsaw_${name} PUBLIC ${view})
  list(TRANSFORM ROOM_DEPENDS PREPEND jigsaw_)
  target_link_libraries(jigsaw_${name} PUBLIC jigsaw_options ${ROOM_DEPENDS} ${ROOM_PUBLIC_LIBRARIES}
    PRIVATE ${ROOM_LIBRARIES})
  if(ROOM_COLD)
    jigsaw_cold(jigsaw_${name})
  endif()
  if(name IN_LIST JIGSAW_SANITIZE_ROOMS)
    target_compile_options(jigsaw_${name} PRIVATE ${JIGSAW_SANITIZE_FLAGS} -O1 -g1)
  endif()
  jigsaw_precompile(jigsaw_${name} ${ROOM_PRECOMPILE})
  jigsaw_unity(jigsaw_${name})
  jigsaw_check_headers(${name} ${ROOM_LIBRARIES})
endfunction()
