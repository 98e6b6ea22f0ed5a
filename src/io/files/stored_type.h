#pragma once
#include <cstdint>

namespace jigsaw::inline files {

/// What numbers are in files that are decoded here.
enum class StoredType : std::uint8_t { kU8, kI8, kI16, kU16, kI32, kU32, kI64, kU64, kF32, kF64 };
std::int64_t size_of(StoredType type);

/// The number that stands at `bytes`. @param swapped  in the byte order that is not this machine's.
using DecodeNumber = double (*)(const char* bytes, bool swapped);
DecodeNumber decoder_of(StoredType type);

}  // namespace jigsaw::inline files
