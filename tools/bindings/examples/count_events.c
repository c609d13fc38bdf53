/* Counts the events of traces, read as one and in order of time, by process:
 *   count_events TRACE... */
#include "etwrelog/etwrelog.h"

#include <stdio.h>
#include <stdlib.h>

struct count {
  uint32_t process;
  unsigned long events;
};

static int by_process(const void *a, const void *b) {
  const struct count *x = a, *y = b;
  return x->process < y->process ? -1 : x->process > y->process;
}

static struct count *find(struct count **counts, size_t *size, uint32_t process) {
  size_t i;
  for (i = 0; i < *size; ++i)
    if ((*counts)[i].process == process) return &(*counts)[i];
  *counts = realloc(*counts, (*size + 1) * sizeof **counts);
  if (*counts == NULL) abort();
  (*counts)[*size].process = process;
  (*counts)[*size].events = 0;
  return &(*counts)[(*size)++];
}

int main(int argc, char **argv) {
  etwr_trace *trace = NULL;
  etwr_cursor *cursor = NULL;
  const etwr_event *event = NULL;
  struct count *counts = NULL;
  size_t size = 0, i;
  double last = 0;

  etwr_error *error =
      etwr_trace_open((const char *const *)(argv + 1), (size_t)(argc - 1), NULL, NULL, &trace);
  if (error == NULL) error = etwr_events(trace, ETWR_ORDER_TIME, NULL, NULL, &cursor);
  while (error == NULL && etwr_next(cursor, &event, &error)) {
    ++find(&counts, &size, event->process_id)->events;
    last = etwr_seconds(trace, event->time);
  }
  if (error != NULL) {
    fprintf(stderr, "count_events: %s\n", etwr_error_message(error));
  } else {
    qsort(counts, size, sizeof *counts, by_process);
    for (i = 0; i < size; ++i)
      printf("%ld %lu\n", counts[i].process == ETWR_UNKNOWN_ID ? -1L : (long)counts[i].process,
             counts[i].events);
    printf("last event at %.6f s\n", last);
  }
  free(counts);
  etwr_cursor_free(cursor);
  etwr_trace_free(trace);
  i = error != NULL;
  etwr_error_free(error);
  return (int)i;
}
