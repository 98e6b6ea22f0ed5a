#include "files/digest.h"

#include <xxhash.h>

#include <cstdio>

#include "base/error.h"

namespace jigsaw::inline files {
namespace {

XXH64_state_t* hash_of(const std::shared_ptr<void>& state) {
  return static_cast<XXH64_state_t*>(state.get());
}

}  // namespace

Digest::Digest()
    : state_(XXH64_createState(), [](void* p) { XXH64_freeState(static_cast<XXH64_state_t*>(p)); }) {
  require(state_ != nullptr, "no memory for a digest");
  XXH64_reset(hash_of(state_), 0);
}

void Digest::add(std::span<const std::byte> bytes) {
  XXH64_update(hash_of(state_), bytes.data(), bytes.size());
}

std::string Digest::text() const {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(XXH64_digest(hash_of(state_))));
  return text;
}

std::string digest_of(std::span<const std::byte> bytes) {
  Digest digest;
  digest.add(bytes);
  return digest.text();
}

std::string digest_of_text(std::string_view text) {
  return digest_of(std::as_bytes(std::span(text)));
}

}  // namespace jigsaw::inline files
