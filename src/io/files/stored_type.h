#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace jigsaw::inline files {

/// What numbers are in files that are decoded here.
enum class StoredType : std::uint8_t { kU8, kI8, kI16, kU16, kI32, kU32, kI64, kU64, kF32, kF64 };
std::int64_t size_of(StoredType type);

/// Puts a number, in this machine's byte order, into its size_of(type) bytes; what the type does not hold
/// becomes the nearest that it does.
void encode_number(StoredType type, double value, std::span<std::byte> bytes);

}  // namespace jigsaw::inline files
