# Writes what `git describe` says of SOURCE into the header OUTPUT, whose time stamp changes only when that does.
#   cmake -D SOURCE=… -D OUTPUT=… -P Commit.cmake
# A tree that lies in another project's is of no commit of that.
execute_process(COMMAND git -C ${SOURCE} rev-parse --show-toplevel
  OUTPUT_VARIABLE top ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12
  OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status)
file(REAL_PATH "${SOURCE}" source)
if(NOT status EQUAL 0 OR NOT top STREQUAL source)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#pragma once

namespace jigsaw {

/// The commit that this was built from, with -dirty where files differed from it.
inline constexpr const char* kCommit = \"${commit}\";

}  // namespace jigsaw
")
