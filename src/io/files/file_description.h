#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "array/box.h"
#include "base/file.h"
#include "files/file_variable.h"
#include "files/unpacking.h"

namespace jigsaw::inline files {

/// Numbers of a variable, row-major, as they are stored.
struct DescribedPiece {
  Box box;
  StoredNumbers numbers;
  std::vector<std::byte> bytes;
};
using DescribedValues = std::map<std::string, std::vector<DescribedPiece>>;  ///< by variable
using DescribedTexts = std::map<std::string, std::vector<std::string>>;      ///< by variable

/// What a file says of itself, for ranks that do not read its header.
struct FileDescription {
  std::string format;            ///< as FileFormat::name
  std::string path, stands_for;  ///< as of VariableFile
  FileState state;               ///< of the file when its header was read
  std::string machine;           ///< where that was; of another one a state does not tell
  std::vector<FileVariable> variables;
  DescribedValues values;  ///< of coordinates
  DescribedTexts texts;    ///< of coordinates that name things
  std::string own;         ///< what only its format understands

  /// Bytes that ranks of one program send each other, and back.
  std::string to_bytes() const;
  static FileDescription from_bytes(const std::string& bytes);
};

}  // namespace jigsaw::inline files
