// Functions that the static libraries of elfutils 0.192 (Debian 13) call and do not have
// (https://sourceware.org/bugzilla/show_bug.cgi?id=32293): search trees of the C library, which a
// lock makes safe. Linked in where a program with these libraries can't be linked without.
#include <search.h>

#include <mutex>
#include <utility>

namespace {

// As far as others than these functions look at it.
struct SearchTree {
  void* root;
};
using Compare = int (*)(const void*, const void*);
using Free = void (*)(void*);

std::mutex g_mutex;

}  // namespace

extern "C" {
void eu_search_tree_init(SearchTree* tree);
void eu_search_tree_fini(SearchTree* tree, Free free_node);
void* eu_tsearch(const void* key, SearchTree* tree, Compare compare);
void* eu_tfind(const void* key, SearchTree* tree, Compare compare);
void* eu_tdelete(const void* key, SearchTree* tree, Compare compare);
void eu_tdestroy(SearchTree* tree, Free free_node);
}

void eu_search_tree_init(SearchTree* tree) {
  tree->root = nullptr;
}

void* eu_tsearch(const void* key, SearchTree* tree, Compare compare) {
  const std::lock_guard lock(g_mutex);
  return tsearch(key, &tree->root, compare);
}

void* eu_tfind(const void* key, SearchTree* tree, Compare compare) {
  const std::lock_guard lock(g_mutex);
  return tfind(key, &tree->root, compare);
}

void* eu_tdelete(const void* key, SearchTree* tree, Compare compare) {
  const std::lock_guard lock(g_mutex);
  return tdelete(key, &tree->root, compare);
}

// The nodes' owner may free trees in them.
void eu_tdestroy(SearchTree* tree, Free free_node) {
  void* root = nullptr;
  {
    const std::lock_guard lock(g_mutex);
    std::swap(root, tree->root);
  }
  tdestroy(root, free_node);
}

void eu_search_tree_fini(SearchTree* tree, Free free_node) {
  eu_tdestroy(tree, free_node);
}
