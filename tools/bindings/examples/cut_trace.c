/* Cuts a trace down to one process, packs the result and says what is in it:
 *   cut_trace TRACE PROCESS OUT.etl     PROCESS: an id, or an image name such as game* */
#include "etwrelog/etwrelog.h"

#include <stdio.h>
#include <string.h>

enum { kLongestPath = 4096, kLongestName = 256 };

static void on_progress(void *context, const char *phase, uint64_t done, uint64_t total) {
  (void)context;
  if (total != 0) fprintf(stderr, "\r%s: %3.0f %%", phase, 100.0 * (double)done / (double)total);
}

static void on_warning(void *context, const char *text) {
  (void)context;
  fprintf(stderr, "\rwarning: %s\n", text);
}

/* The first event of each kind, with its fields. */
static etwr_error *print_kinds(const etwr_trace *trace, const etwr_run *run) {
  static char seen[kLongestName][kLongestName];
  size_t kinds = 0, i;
  etwr_schemas *schemas = NULL;
  etwr_decoder *decoder = NULL;
  etwr_cursor *cursor = NULL;
  const etwr_event *event = NULL;
  const etwr_decoded *decoded = NULL;
  etwr_error *error = etwr_schemas_collect(trace, run, &schemas);
  if (error == NULL) error = etwr_decoder_new(schemas, &decoder);
  if (error == NULL) error = etwr_events(trace, ETWR_ORDER_TIME, NULL, run, &cursor);
  while (error == NULL && kinds < kLongestName && etwr_next(cursor, &event, &error)) {
    etwr_event_name(schemas, event, seen[kinds], kLongestName);
    for (i = 0; strcmp(seen[i], seen[kinds]) != 0; ++i) {
    }
    if (i < kinds) continue;
    printf("%s\n", seen[kinds++]);
    if (!etwr_decode(decoder, event, &decoded, &error)) continue;
    for (i = 0; i < decoded->field_count; ++i) {
      const etwr_field *field = etwr_field_at(decoder, i);
      if (field != NULL) printf("  %s = %s\n", field->name, field->text);
    }
  }
  etwr_cursor_free(cursor);
  etwr_decoder_free(decoder);
  etwr_schemas_free(schemas);
  return error;
}

static etwr_error *print_processes(const etwr_trace *trace, const etwr_run *run) {
  etwr_processes *processes = NULL;
  size_t i;
  etwr_error *error = etwr_processes_collect(trace, run, &processes);
  for (i = 0; error == NULL && i < etwr_process_count(processes); ++i) {
    const etwr_process *process = etwr_process_at(processes, i);
    printf("process %lu %s %s\n", (unsigned long)process->process_id, process->image_name,
           process->command_line);
  }
  etwr_processes_free(processes);
  return error;
}

int main(int argc, char **argv) {
  char archive[kLongestPath];
  etwr_trace *trace = NULL, *cut = NULL;
  etwr_error *error = NULL;
  etwr_run run = {.struct_size = sizeof run};
  etwr_selection selection = {.struct_size = sizeof selection};
  etwr_relog_options options = {.struct_size = sizeof options};
  etwr_relog_report report = {.struct_size = sizeof report};
  etwr_archive_report packed = {.struct_size = sizeof packed};
  char *json = NULL;
  int failed;
  if (argc != 4 || strlen(argv[3]) + 2 > kLongestPath) {
    fprintf(stderr, "usage: cut_trace TRACE PROCESS OUT.etl\n");
    return 2;
  }
  run.progress = on_progress;
  run.warning = on_warning;
  selection.processes = (const char *const *)&argv[2];
  selection.process_count = 1;
  options.selection = &selection;
  sprintf(archive, "%sz", argv[3]);

  error = etwr_trace_open((const char *const *)&argv[1], 1, NULL, &run, &trace);
  if (error == NULL) error = etwr_relog(trace, argv[3], &options, &run, &report);
  if (error == NULL) error = etwr_pack(argv[3], archive, NULL, &run, &packed);
  if (error == NULL) error = etwr_verify(archive, argv[3], NULL, &run, NULL);
  if (error == NULL) error = etwr_trace_open((const char *const *)&argv[3], 1, NULL, &run, &cut);
  if (error == NULL) error = print_processes(cut, &run);
  if (error == NULL) error = print_kinds(cut, &run);
  if (error == NULL) error = etwr_statistics_json(cut, &run, &json);
  fprintf(stderr, "\n");
  if (error == NULL)
    printf("%lu of %lu events, %lu bytes of statistics\n", (unsigned long)report.events_out,
           (unsigned long)report.events_in, (unsigned long)strlen(json));
  else
    fprintf(stderr, "cut_trace: %s\n", etwr_error_message(error));
  etwr_string_free(json);
  etwr_trace_free(cut);
  etwr_trace_free(trace);
  failed = error != NULL;
  etwr_error_free(error);
  return failed;
}
