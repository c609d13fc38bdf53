/* The structures of Arrow's C data interface and C stream interface
 * (https://arrow.apache.org/docs/format/CDataInterface.html), which every program that knows Arrow declares
 * for itself, letter by letter. Who includes Arrow's or another program's declaration, too, gets one of them:
 * the guards are those of the specification. C99 and C++.
 *
 * Whoever is handed one of these calls its `release` when done with it; a structure whose `release` is NULL
 * holds nothing. Structures may be copied to another place if the old one's `release` is then set to NULL. */
#ifndef ETWRELOG_ARROW_ABI_H
#define ETWRELOG_ARROW_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

/* What a column, or a table as a structure of columns, is called and made of. */
struct ArrowSchema {
  const char *format; /* "l" i64, "u" UTF-8, "+s" structure, ...: the specification's list */
  const char *name;
  const char *metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema **children;
  struct ArrowSchema *dictionary;
  void (*release)(struct ArrowSchema *);
  void *private_data;
};

/* The values of a column, or a batch of rows as a structure of columns. */
struct ArrowArray {
  int64_t length; /* rows */
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void **buffers;
  struct ArrowArray **children;
  struct ArrowArray *dictionary;
  void (*release)(struct ArrowArray *);
  void *private_data;
};

#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

/* Batches of rows of one table, one after the other. Calls give 0 or an errno; of the last one that failed,
 * get_last_error says more, until the next call. One thread at a time. */
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
  int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out); /* out->release is NULL at the end */
  const char *(*get_last_error)(struct ArrowArrayStream *);
  void (*release)(struct ArrowArrayStream *);
  void *private_data;
};

#endif

#ifdef __cplusplus
}
#endif
#endif
