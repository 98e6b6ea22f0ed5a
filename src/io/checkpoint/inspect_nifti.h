#pragma once
#include <string>

#include "files/nifti_file.h"

namespace jigsaw::inline checkpoint {

/// Lines, each behind an indentation, of what a NIfTI file says beside its extents: the type and scale of its
/// numbers, the distances of points along the file's axes with the letters of where these run (as
/// nibabel.aff2axcodes), its affine with the codes of its place, and of whole numbers of few values, which
/// may be labels, how many points have each.
std::string describe_nifti(NiftiFile& file);

}  // namespace jigsaw::inline checkpoint
