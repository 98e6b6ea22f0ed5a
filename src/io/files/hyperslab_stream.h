#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "array/box.h"
#include "base/file.h"
#include "files/hyperslab.h"
#include "files/unpacking.h"

namespace jigsaw::inline files {

class VariableFile;
struct FileVariable;

/// Numbers that stand in a file as they are.
struct PlainNumbers {
  std::shared_ptr<const File> file;
  PlainArray array;
  StoredNumbers numbers;
};

/// A hyperslab that is read in order, as many values at a time as the caller wants, with the same result as
/// VariableFile::read: what takes values up piece by piece needs no memory for all of them, and finds them in
/// the processor's cache. For one thread; the VariableFile must stay, but may be closed meanwhile.
class HyperslabStream {
 public:
  HyperslabStream(VariableFile& file, const FileVariable& variable, const Box& box, PlainNumbers plain);

  /// The next out.size() values, in physical units; T is float or double. With the last ones the file must
  /// still be what it was when it was opened. @throws DataError
  template <typename T>
  void read(std::span<T> out);
  const FileVariable& variable() const { return *variable_; }
  /// Open as long as the stream lives.
  const File& file() const { return *plain_.file; }
  /// Bytes that the system was asked for so far.
  std::int64_t fetched() const { return fetched_; }

 private:
  VariableFile* file_;
  const FileVariable* variable_;
  Box box_;
  PlainNumbers plain_;
  Unpacking unpacking_;
  std::int64_t next_ = 0;        ///< point
  std::int64_t prefetched_ = 0;  ///< behind the points that the system was told of
  std::int64_t fetched_ = 0, undeclared_ = 0, infinite_ = 0;
};

}  // namespace jigsaw::inline files
