#include "base/file_kind.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/text.h"

namespace jigsaw::inline base {

namespace {

namespace fs = std::filesystem;
using std::string_view_literals::operator""sv;

/// As many bytes as the signature that stands farthest behind (NIfTI's) ends at.
constexpr std::size_t kBeginBytes = 352;

/// In conversions: the path, and the path without its ending.
constexpr std::string_view kPath = "{path}", kStem = "{stem}";

struct Signature {
  std::size_t offset;
  std::string_view bytes;
  std::string_view name, conversion;
};

constexpr std::string_view kGdal = "gdal_translate -of netCDF {path} {stem}.nc";

constexpr std::string_view kNibabel =
    "python3 -c 'import sys, nibabel; nibabel.save(nibabel.load(sys.argv[1]), sys.argv[2])' {path} "
    "{stem}.nii";
constexpr std::string_view kSimpleItk =
    "python3 -c 'import sys, SimpleITK as s; s.WriteImage(s.ReadImage(sys.argv[1]), sys.argv[2])' {path} "
    "{stem}.nii.gz";

const Signature kSignatures[] = {
    {0, "CDF\x01"sv, "a NetCDF file", ""},
    {0, "CDF\x02"sv, "a NetCDF file", ""},
    {0, "CDF\x05"sv, "a NetCDF file", ""},
    {0, "\x89HDF\r\n\x1a\n"sv, "an HDF5 or NetCDF-4 file", ""},
    {0, "GRIB"sv, "a GRIB file", "cdo -f nc4 copy {path} {stem}.nc"},
    {0, "\x0e\x03\x13\x01"sv, "an HDF4 file", "h4toh5convert {path} {stem}.h5"},
    {0, "II*\0"sv, "a TIFF file", kGdal},
    {0, "MM\0*"sv, "a TIFF file", kGdal},
    {0, "II+\0"sv, "a TIFF file", kGdal},
    {0, "MM\0+"sv, "a TIFF file", kGdal},
    {0, "\x89PNG"sv, "a PNG image", kGdal},
    {0, "\xff\xd8\xff"sv, "a JPEG image", kGdal},
    {128, "DICM"sv, "a DICOM file", "dcm2niix -o {stem}_nifti {path}"},
    {344, "n+1\0"sv, "a NIfTI file", ""},
    {344, "ni1\0"sv, "the header of a NIfTI pair", kNibabel},
    {4, "ni2\0"sv, "the header of a NIfTI-2 pair", kNibabel},
    {4, "n+2\0"sv, "a NIfTI-2 file",
     "python3 -c 'import sys, nibabel as n; i = n.load(sys.argv[1]); n.save(n.Nifti1Image(i.dataobj, "
     "i.affine), sys.argv[2])' "
     "{path} {stem}_1.nii"},
    {0, "MATLAB 5.0"sv, "a MATLAB file before version 7.3",
     "python3 -c 'import sys, scipy.io, h5py; h = h5py.File(sys.argv[2], \"w\"); [h.create_dataset(k, "
     "data=v) for k, v in "
     "scipy.io.loadmat(sys.argv[1]).items() if k[0] != \"_\"]' {path} {stem}.h5"},
    {0, "ObjectType = Image"sv, "a MetaImage", kSimpleItk},
    {0, "NDims = "sv, "a MetaImage", kSimpleItk},
    {0, "NRRD000"sv, "an NRRD file", kSimpleItk},
    {0, "\x93NUMPY"sv, "a NumPy file",
     "python3 -c 'import sys, numpy, h5py; h5py.File(sys.argv[2], \"w\")[\"x\"] = numpy.load(sys.argv[1])' "
     "{path} {stem}.h5"},
    {0, "PK\x03\x04"sv, "a zip archive", "unzip {path}"},
    {0, "\x1f\x8b"sv, "compressed by gzip", "gunzip -k {path}"},
    {0, "BZh"sv, "compressed by bzip2", "bunzip2 -k {path}"},
    {0, "\x28\xb5\x2f\xfd"sv, "compressed by zstd", "zstd -d {path}"},
    {0, "\xfd\x37zXZ"sv, "compressed by xz", "unxz -k {path}"},
};

constexpr std::string_view kZarrConversion =
    "python3 -c 'import sys, xarray; xarray.open_zarr(sys.argv[1]).to_netcdf(sys.argv[2])' {path} {stem}.nc";

std::string begin_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string begin(kBeginBytes, '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return begin;
}

std::string filled_in(std::string_view conversion, const std::string& path) {
  fs::path stem(path);
  while (!stem.has_filename() && stem.has_relative_path()) stem = stem.parent_path();  // "x.zarr/"
  if (stem.extension() == ".gz") stem.replace_extension();
  stem.replace_extension();
  std::string text(conversion);
  for (const auto& [mark, word] : {std::pair{kPath, path}, std::pair{kStem, stem.string()}}) {
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
      const std::string quoted = shell_word(word);
      text.replace(at, mark.size(), quoted);
      at += quoted.size();
    }
  }
  return text;
}

/// Length of a JSON header in eight bytes, then the header.
bool is_safetensors(std::string_view begin) {
  return begin.size() > 8 && begin[8] == '{' && begin.substr(5, 3) == "\0\0\0"sv;
}

bool is_text(std::string_view begin) {
  return !begin.empty() && std::none_of(begin.begin(), begin.end(), [](char c) {
    return (static_cast<unsigned char>(c) < ' ' && std::string_view("\t\n\r\f").find(c) == std::string::npos);
  });
}

}  // namespace

std::string shell_word(const std::string& text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./+,:@%").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

bool is_zarr_store(const std::string& path) {
  std::error_code ignored;
  const std::array files = {".zgroup", ".zmetadata", ".zarray", "zarr.json"};
  return fs::is_directory(path, ignored) && std::any_of(files.begin(), files.end(), [&](const char* name) {
           return fs::exists(fs::path(path) / name, ignored);
         });
}

std::optional<FileKind> kind_of_file(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    if (is_zarr_store(path)) return FileKind{"a Zarr store", filled_in(kZarrConversion, path)};
    return FileKind{"a folder", ""};
  }
  if (!fs::is_regular_file(path, ignored)) return std::nullopt;
  if (auto kind = kind_of_content(begin_of(path), path)) return kind;
  const fs::path header = fs::path(path).replace_extension(".hdr");
  if (fs::path(path).extension() != ".img" || !fs::is_regular_file(header, ignored)) return std::nullopt;
  const std::optional<FileKind> pair = kind_of_content(begin_of(header.string()), path);
  if (!pair || !pair->name.ends_with(" pair")) return std::nullopt;
  return FileKind{concat("the values of a NIfTI pair, whose header is ", header.string()), pair->conversion};
}

std::optional<FileKind> kind_of_content(const std::string& begin, const std::string& path) {
  for (const Signature& signature : kSignatures) {
    if (begin.size() >= signature.offset + signature.bytes.size() &&
        begin.compare(signature.offset, signature.bytes.size(), signature.bytes) == 0) {
      return FileKind{std::string(signature.name), filled_in(signature.conversion, path)};
    }
  }
  if (is_safetensors(begin)) return FileKind{"a safetensors file", ""};
  if (is_text(begin)) return FileKind{"a text file", ""};
  return std::nullopt;
}

}  // namespace jigsaw::inline base
