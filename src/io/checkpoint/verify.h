#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/shard.h"
#include "config/json.h"

namespace jigsaw::inline checkpoint {

/// A file of a checkpoint and what its manifest says of its bytes.
struct ExpectedFile {
  /// Bytes of a piece; those of a file do not overlap.
  struct Piece {
    std::int64_t offset = 0, bytes = 0;
    std::string digest;
  };
  FileRecord file;
  std::vector<Piece> pieces;  ///< in the order of the shard's
  /// The file's digest is that of its bytes with the digest of each piece, as text, in place of the piece's
  /// own, so that these are hashed once.
  bool by_pieces = false;
};

ExpectedFile expected_file(const ShardRecord& shard, bool by_pieces);
/// As JSON, for the rank that verifies it, and back. @throws Error
Json describe_expected(const ExpectedFile& expected);
ExpectedFile read_expected(const Json& json);

/// What of a file's bytes is not as its manifest says.
struct Verdict {
  bool file_fits = true;             ///< its digest
  std::vector<std::size_t> damaged;  ///< pieces whose digests do not fit

  bool whole() const { return file_fits && damaged.empty(); }
};

/// Reads a file once. @throws FileError
Verdict verify_bytes(const std::string& path, const ExpectedFile& expected);

}  // namespace jigsaw::inline checkpoint
