#pragma once

namespace jigsaw {

/// What a command printed for others to read must be there in whole.
/// @throws DataError
void require_printed();

}  // namespace jigsaw
