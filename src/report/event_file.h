#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/line_file.h"

namespace jigsaw::inline report {

/// CRC-32C (Castagnoli), as of iSCSI (RFC 3720).
std::uint32_t crc32c(std::string_view bytes);

/// A TFRecord: length, masked CRC of it, the bytes, masked CRC of them; little endian.
std::string tf_record(std::string_view bytes);

/// A file of events that TensorBoard reads (tensorflow/core/util/event.proto, summary.proto): scalars, images
/// and texts by tag and step. Written record by record, so that it can be read while it grows; a disk that is
/// full throws FileError and leaves no torn record.
class EventFile {
 public:
  /// Makes "events.out.tfevents.SECONDS.jigsaw" in a folder that is there, and begins it.
  /// @param seconds  since 1970, of now.
  EventFile(const std::string& folder, double seconds);

  const std::string& path() const { return path_; }
  /// What other files of the folder say of this step and later ones no longer counts.
  void begin_session(std::int64_t step, double seconds);
  void add_scalar(const std::string& tag, std::int64_t step, double value, double seconds);
  /// @param png  of this size.
  void add_image(const std::string& tag, std::int64_t step, std::int64_t width, std::int64_t height,
                 const std::string& png, double seconds);
  /// Shown as Markdown.
  void add_text(const std::string& tag, std::int64_t step, const std::string& text, double seconds);

 private:
  void add_event(std::int64_t step, const std::string& what, double seconds);
  void add_value(std::int64_t step, const std::string& value, double seconds);

  std::string path_;
  LineFile file_;
};

}  // namespace jigsaw::inline report
