#pragma once

namespace jigsaw::inline base {

/// From now on note_exit_code() writes to the file that $JIGSAW_EXIT_FILE names. Processes that this one
/// starts do not: the variable goes.
void take_exit_file();

/// Tells a batch script how the job ends, in that file, which the script has made: a line of three blanks, in
/// the place of which the code stands then. The first who tells counts. Launchers report the highest code of
/// all ranks, though those that are ended with a job may have another than the one that ended it, and 0 where
/// none ever started.
void note_exit_code(int code) noexcept;

}  // namespace jigsaw::inline base
