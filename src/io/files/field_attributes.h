#pragma once
#include <cstddef>
#include <string>

namespace jigsaw::inline files {

/// So many attributes of a field are kept at most.
inline constexpr std::size_t kMostFieldAttributes = 64;

/// Whether an attribute says what a field is (cell_methods, comment, …), and so holds of other values of it,
/// too: not how its numbers are packed, stored or limited, which other variables of its file belong to it, or
/// how a GRIB message was laid out. False also for a name that NetCDF does not take.
bool is_of_field(const std::string& attribute);
/// Whether an attribute of a grid mapping is not of that variable's own storage: its value says nothing.
/// Names that begin with _ are the library's.
bool says_mapping(const std::string& attribute);

}  // namespace jigsaw::inline files
