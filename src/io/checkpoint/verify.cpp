#include "checkpoint/verify.h"

#include <fcntl.h>

#include <algorithm>

#include "base/file.h"
#include "checkpoint/manifest.h"
#include "files/digest.h"

namespace jigsaw::inline checkpoint {
namespace {

constexpr std::int64_t kReadBytes = 4 << 20;

/// Digests of a file and of its pieces while it goes by.
class PassingDigests {
 public:
  explicit PassingDigests(const ExpectedFile& expected)
      : pieces_(expected.pieces), by_pieces_(expected.by_pieces) {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i].bytes > 0) order_.push_back(i);
    }
    std::ranges::sort(order_, {}, [&](std::size_t i) { return pieces_[i].offset; });
  }

  /// Bytes behind those that were added before.
  void add(std::span<const std::byte> bytes) {
    if (!by_pieces_) file_.add(bytes);
    while (!bytes.empty()) {
      const bool none_left = next_ == order_.size();
      const ExpectedFile::Piece* piece = none_left ? nullptr : &pieces_[order_[next_]];
      if (piece == nullptr || at_ < piece->offset) {
        const auto between = take(bytes, piece == nullptr ? std::ssize(bytes) : piece->offset - at_);
        if (by_pieces_) file_.add(between);
      } else {
        piece_.add(take(bytes, piece->offset + piece->bytes - at_));
        if (at_ == piece->offset + piece->bytes) end_piece(*piece);
      }
    }
  }

  Verdict verdict(const std::string& digest) const {
    Verdict result{file_.text() == digest, damaged_};
    std::ranges::sort(result.damaged);
    return result;
  }

 private:
  /// At most `most` bytes from the begin of those, which then are behind.
  std::span<const std::byte> take(std::span<const std::byte>& bytes, std::int64_t most) {
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(most, std::ssize(bytes)));
    const auto taken = bytes.first(count);
    bytes = bytes.subspan(count);
    at_ += std::ssize(taken);
    return taken;
  }

  void end_piece(const ExpectedFile::Piece& piece) {
    const std::string digest = piece_.text();
    if (digest != piece.digest) damaged_.push_back(order_[next_]);
    if (by_pieces_) file_.add(std::as_bytes(std::span(digest)));
    piece_ = Digest();
    ++next_;
  }

  const std::vector<ExpectedFile::Piece>& pieces_;
  bool by_pieces_;
  std::vector<std::size_t> order_, damaged_;
  std::size_t next_ = 0;
  std::int64_t at_ = 0;
  Digest file_, piece_;
};

}  // namespace

ExpectedFile expected_file(const ShardRecord& shard, bool by_pieces) {
  ExpectedFile expected{shard.file, {}, by_pieces};
  for (const PieceRecord& piece : shard.pieces) {
    expected.pieces.push_back({piece.offset, piece.box.extent.count() * size_of(piece.dtype), piece.digest});
  }
  return expected;
}

Json describe_expected(const ExpectedFile& expected) {
  Json pieces = Json::array();
  for (const ExpectedFile::Piece& piece : expected.pieces)
    pieces.push_back(Json::array({piece.offset, piece.bytes, piece.digest}));
  return {{"file", describe_file(expected.file)},
          {"pieces", std::move(pieces)},
          {"by_pieces", expected.by_pieces}};
}

ExpectedFile read_expected(const Json& json) {
  ExpectedFile expected{read_file_record(json.at("file")), {}, json.at("by_pieces").get<bool>()};
  for (const Json& piece : json.at("pieces"))
    expected.pieces.push_back(
        {read_count(piece.at(0)), read_count(piece.at(1)), piece.at(2).get<std::string>()});
  return expected;
}

Verdict verify_bytes(const std::string& path, const ExpectedFile& expected) {
  const File file(path, O_RDONLY);
  const std::int64_t size = file.size();
  PassingDigests digests(expected);
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(size, kReadBytes)));
  for (std::int64_t offset = 0; offset < size; offset += kReadBytes) {
    const std::span part(buffer.data(), static_cast<std::size_t>(std::min(size - offset, kReadBytes)));
    file.read(part, offset);
    digests.add(part);
  }
  return digests.verdict(expected.file.digest);
}

}  // namespace jigsaw::inline checkpoint
