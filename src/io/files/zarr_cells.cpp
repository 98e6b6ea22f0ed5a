#include "files/zarr_cells.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace jigsaw::inline files {

namespace {

using Json = nlohmann::json;

/// Rows and columns of a box, whatever its variable is, and how many planes of them.
struct Part {
  std::int64_t planes = 1, row = 0, rows = 1, column = 0, columns = 1;
};

Part part_of(const Box& box, CellsAs as) {
  Part part;
  const int last = box.extent.rank() - 1;
  if (as != CellsAs::kColumns) {
    const int rows = as == CellsAs::kRows ? last : last - 1;
    part.row = box.begin[rows];
    part.rows = box.extent[rows];
    part.planes = box.extent.count(0, rows);
  }
  if (as != CellsAs::kRows) {
    part.column = box.begin[last];
    part.columns = box.extent[last];
  }
  return part;
}

/// From the first to behind the last.
std::int64_t span_of(const Part& part, std::int64_t columns) {
  return part.rows > 0 ? (part.rows - 1) * columns + part.columns : 0;
}

}  // namespace

Box ZarrPlace::in_array(const Box& box) const {
  if (as == CellsAs::kNone) return box;
  const Part part = part_of(box, as);
  Box result;
  for (int d = 0; as == CellsAs::kPlane && d < box.extent.rank() - 2; ++d) {
    result.begin.append(box.begin[d]);
    result.extent.append(box.extent[d]);
  }
  result.begin.append(part.row * columns + part.column);
  result.extent.append(span_of(part, columns));
  return result;
}

bool ZarrPlace::gapless(const Box& box) const {
  if (as == CellsAs::kNone) return true;
  const Part part = part_of(box, as);
  return part.rows <= 1 || part.columns == columns;
}

void ZarrPlace::gather(const Box& box, std::span<const std::byte> from, std::span<std::byte> to,
                       std::int64_t size) const {
  const Part part = part_of(box, as);
  const std::int64_t run = part.columns * size, span = span_of(part, columns) * size;
  require(std::ssize(from) == part.planes * span && std::ssize(to) == part.planes * part.rows * run,
          "a box of cells is another one");
  std::byte* out = to.data();
  for (std::int64_t plane = 0; plane < part.planes; ++plane) {
    for (std::int64_t row = 0; row < part.rows; ++row, out += run)
      std::memcpy(out, from.data() + plane * span + row * columns * size, static_cast<std::size_t>(run));
  }
}

Json ZarrPlace::to_json() const {
  return {folder, static_cast<int>(as), columns};
}

ZarrPlace ZarrPlace::from_json(const Json& json) {
  return {json.at(0).get<std::string>(), static_cast<CellsAs>(json.at(1).get<int>()),
          json.at(2).get<std::int64_t>()};
}

std::optional<AnemoiAttributes> AnemoiAttributes::of(const Json& attributes, const Shape& extents) {
  const Json names = attributes.is_object() ? attributes.value("variables", Json()) : Json();
  if (extents.rank() != 4 || !names.is_array() || std::ssize(names) != extents[1]) return std::nullopt;
  AnemoiAttributes result;
  for (const Json& name : names) {
    if (!name.is_string()) return std::nullopt;
    result.variables.push_back(name.get<std::string>());
  }
  const Json shape = attributes.value("field_shape", Json());
  if (!shape.is_array() || shape.size() != 2) return result;
  for (const Json& extent : shape)
    if (!extent.is_number_integer() || extent <= 0 || extent > extents[3]) return result;
  const auto rows = shape[0].get<std::int64_t>(), columns = shape[1].get<std::int64_t>();
  if (extents[3] % rows != 0 || extents[3] / rows != columns) return result;
  result.rows = rows;
  result.columns = columns;
  return result;
}

bool are_rows_and_columns(std::span<const double> latitudes, std::span<const double> longitudes,
                          std::int64_t columns) {
  for (std::size_t i = 0; i < latitudes.size(); ++i) {
    const std::size_t column = i % static_cast<std::size_t>(columns);
    if (latitudes[i] != latitudes[i - column] || longitudes[i] != longitudes[column]) return false;
  }
  return true;
}

}  // namespace jigsaw::inline files
