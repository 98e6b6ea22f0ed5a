#include "config/form.h"

namespace jigsaw::inline config {

std::string noun(std::string_view with_article, Wording wording) {
  if (wording == Wording::kWithArticle) return std::string(with_article);
  const std::string plain(with_article.substr(with_article.find(' ') + 1));
  return wording == Wording::kPlain ? plain : plain + "s";
}

}  // namespace jigsaw::inline config
