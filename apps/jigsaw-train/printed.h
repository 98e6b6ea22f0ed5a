#pragma once

namespace jigsaw {

/// Settles, before anything else is opened, what becomes of what nobody reads: where stdin, stdout or stderr
/// are closed /dev/null stands in for them, so that no file gets their place and what is printed in it, and a
/// reader that leaves (`| head`) ends no process.
void open_standard_streams();

/// What a command printed for others to read must be there in whole, unless they left before.
/// @throws DiskError
void require_printed();

}  // namespace jigsaw
