// What the compiler calls at each access to memory in sources that are compiled with -fsanitize=thread, as
// CUDA's kernels are for the fake runtime: here the sanitizer itself is not linked, and accesses go to
// WorkOrder and ThreadOrder. With -fsanitize=alignment,bounds-strict it calls functions where an address is
// no multiple of what the type wants, which a GPU does not read or write, and where an index is beyond an
// array.
#include "base/text.h"
#include "support/fake_cuda/fake_cuda.h"
#include "support/fake_cuda/thread_order.h"
#include "support/fake_cuda/work_order.h"

namespace {

namespace fake_cuda = jigsaw::testing::fake_cuda;
using jigsaw::testing::fake_cuda::ThreadOrder;
using jigsaw::testing::fake_cuda::WorkOrder;

void reads(const void* address, unsigned long bytes) {
  WorkOrder::all().touched(address, bytes, false);
  ThreadOrder::all().touched(address, bytes, false);
}
void writes(const void* address, unsigned long bytes) {
  WorkOrder::all().touched(address, bytes, true);
  ThreadOrder::all().touched(address, bytes, true);
}

/// What the compiler says of an access, as its library for undefined behaviour reads it.
struct TypeDescriptor {
  std::uint16_t kind, info;
  char name[1];  ///< goes on
};
struct Place {
  const char* file;
  std::uint32_t line, column;
};
struct TypeMismatch {
  Place place;
  const TypeDescriptor* type;
  unsigned char log_alignment, access;
};
struct OutOfBounds {
  Place place;
  const TypeDescriptor *array, *index;
};

/// A kernel's thread does what a GPU's must not.
void accuse(const Place& place, const std::string& what) {
  if (!fake_cuda::in_kernel()) return;  // a processor does not mind, or a test of its own finds it
  fake_cuda::accuse(jigsaw::concat(what, " (", place.file, ":", place.line, ")"));
  fake_cuda::end_kernel();
}

}  // namespace

#define JIGSAW_ACCESS(BYTES)                     \
  void __tsan_read##BYTES(void* at) {            \
    reads(at, BYTES);                            \
  }                                              \
  void __tsan_write##BYTES(void* at) {           \
    writes(at, BYTES);                           \
  }                                              \
  void __tsan_unaligned_read##BYTES(void* at) {  \
    reads(at, BYTES);                            \
  }                                              \
  void __tsan_unaligned_write##BYTES(void* at) { \
    writes(at, BYTES);                           \
  }

// Counters of shared pointers, which kernels have none of.
#define JIGSAW_ATOMIC(BITS, TYPE)                                                                         \
  TYPE __tsan_atomic##BITS##_load(const volatile TYPE* at, int) {                                         \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                         \
  }                                                                                                       \
  void __tsan_atomic##BITS##_store(volatile TYPE* at, TYPE value, int) {                                  \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                        \
  }                                                                                                       \
  TYPE __tsan_atomic##BITS##_fetch_add(volatile TYPE* at, TYPE value, int) {                              \
    return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);                                               \
  }                                                                                                       \
  TYPE __tsan_atomic##BITS##_fetch_sub(volatile TYPE* at, TYPE value, int) {                              \
    return __atomic_fetch_sub(at, value, __ATOMIC_SEQ_CST);                                               \
  }                                                                                                       \
  TYPE __tsan_atomic##BITS##_exchange(volatile TYPE* at, TYPE value, int) {                               \
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                              \
  }                                                                                                       \
  int __tsan_atomic##BITS##_compare_exchange_strong(volatile TYPE* at, TYPE* old, TYPE value, int, int) { \
    return __atomic_compare_exchange_n(at, old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);        \
  }                                                                                                       \
  int __tsan_atomic##BITS##_compare_exchange_weak(volatile TYPE* at, TYPE* old, TYPE value, int, int) {   \
    return __atomic_compare_exchange_n(at, old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);        \
  }

extern "C" {
JIGSAW_ACCESS(1)
JIGSAW_ACCESS(2)
JIGSAW_ACCESS(4)
JIGSAW_ACCESS(8)
JIGSAW_ACCESS(16)
JIGSAW_ATOMIC(8, unsigned char)
JIGSAW_ATOMIC(32, unsigned)
JIGSAW_ATOMIC(64, unsigned long)
void __tsan_read_range(void* at, unsigned long bytes) {
  reads(at, bytes);
}
void __tsan_write_range(void* at, unsigned long bytes) {
  writes(at, bytes);
}
void __tsan_vptr_update(void** /*at*/, void* /*value*/) {}
void __tsan_vptr_read(void** /*at*/) {}
void __tsan_func_entry(void* /*caller*/) {}
void __tsan_func_exit() {}
void __tsan_init() {}
void __ubsan_handle_type_mismatch_v1(const TypeMismatch* of, const void* /*at*/) {
  accuse(of->place, jigsaw::concat(" touches ", of->type->name, " at no multiple of ", 1 << of->log_alignment,
                                   " bytes"));
}
void __ubsan_handle_out_of_bounds(const OutOfBounds* of, unsigned long index) {
  accuse(of->place, jigsaw::concat(" indexes ", of->array->name, " with ", index));
}
}
