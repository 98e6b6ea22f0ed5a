#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "files/variable_file.h"

namespace jigsaw::inline init {

/// What headers of files say beside their fields.

/// Why variables of a file cannot be read, "t2m in a.zarr cannot be used: …", of each that has not just one
/// dimension.
std::vector<std::string> refusals_in(const VariableFile& file);
/// The names of variables that hold the limits of cells, as the attribute `bounds` of others has them.
std::set<std::string> bounds_in(const VariableFile& file);

/// What is to be said of each of these variables of which a coordinate of one value that it names (`band_id`
/// of a satellite's images, `height`) is another in another file: it is hardly one. Neither times, nor
/// levels, nor members are looked at, nor what cannot be read.
std::vector<std::string> differing_scalars(const std::vector<std::string>& paths,
                                           const std::vector<std::string>& variables);

/// Whether a variable has a latitude, a longitude and a time, as they are called: what is wrong with them is
/// no sign of images.
bool has_fields_in_time(const std::string& path);
/// Why the first such variable that cannot be read cannot be; "" where there is none.
std::string refusal_of_field(const std::string& path);
/// Why the first variable with dates lies on a grid that cannot be read, though it is known
/// (DataFile::unread_grid); "" where none does.
std::string refusal_of_grid(const std::string& path);
/// What the largest variable lacks that looks like a field, by names of dimensions or attributes of CF, to be
/// one in time; "" where none looks so.
std::string lack_of_field(const std::string& path);
/// The format of images that a file is of which cannot be read as fields; "" where it cannot be opened at
/// all. Nothing where its name, or its format, which names dimensions, says that it holds fields.
std::optional<std::string> image_format(const std::string& path);

}  // namespace jigsaw::inline init
