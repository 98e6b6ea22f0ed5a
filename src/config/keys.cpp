#include "config/keys.h"

namespace jigsaw::inline config {

#define JIGSAW_KEY_TYPE(...)               \
  template class DeclaredKey<__VA_ARGS__>; \
  template FormPtr<__VA_ARGS__> form_of<__VA_ARGS__>()
JIGSAW_COMMON_KEY_TYPES(JIGSAW_KEY_TYPE);
#undef JIGSAW_KEY_TYPE

}  // namespace jigsaw::inline config
