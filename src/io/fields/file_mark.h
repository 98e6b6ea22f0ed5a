#pragma once
#include <string>

#include "files/probe.h"

namespace jigsaw::inline fields {

/// What tells whether a file is one that was read before in the same way: a digest of its
/// identity (file_identity). "" for what is no regular file: of a folder no state tells
/// that all below it is as it was.
std::string file_mark(const std::string& path, Dimensions dimensions, External external);

}  // namespace jigsaw::inline fields
