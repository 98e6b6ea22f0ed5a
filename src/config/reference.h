#pragma once
#include <string>

#include "config/key_table.h"

namespace jigsaw::inline config {

/// Every key as Markdown: one table per section, then one per type of the tagged sections.
std::string reference_text(const KeyTable& root);

}  // namespace jigsaw::inline config
