// Loaded into the tool by tools/torture: counts the calls that write, name or close files, and at one of them
// ends the process or lets the call fail.
//   TORTURE_COUNT=FILE   write the number of calls there at exit
//   TORTURE_AT=N         the call to meet; with TORTURE_ERRNO=E it fails with that, without the process is
//   killed TORTURE_NAMED=1      no unnamed temporary files, as on file systems that have none
//   TORTURE_THREADS=N    so many more threads can be alive at once
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long calls;
static atomic_long threads;

static long number(const char *name, long otherwise) {
  const char *text = getenv(name);
  return text ? atol(text) : otherwise;
}

// Whether this call is to fail.
static int met(void) {
  static atomic_long at = -2, code;
  if (atomic_load(&at) == -2) {
    atomic_store(&code, number("TORTURE_ERRNO", 0));
    atomic_store(&at, number("TORTURE_AT", -1));
  }
  if (atomic_fetch_add(&calls, 1) != atomic_load(&at)) return 0;
  if (atomic_load(&code) == 0) {
    kill(getpid(), SIGKILL);
    pause();
  }
  errno = (int)atomic_load(&code);
  return 1;
}

__attribute__((destructor)) static void tell(void) {
  const char *path = getenv("TORTURE_COUNT");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (!file) return;
  fprintf(file, "%ld\n", atomic_load(&calls));
  fclose(file);
}

#define WRAP(result, name, parameters, arguments)                                                            \
  result name parameters {                                                                                   \
    static result(*real) parameters;                                                                         \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name);                                                    \
    if (met()) return -1;                                                                                    \
    return real arguments;                                                                                   \
  }
WRAP(ssize_t, pwrite, (int fd, const void *b, size_t n, off_t at), (fd, b, n, at))
WRAP(ssize_t, pwrite64, (int fd, const void *b, size_t n, off64_t at), (fd, b, n, at))
WRAP(int, fsync, (int fd), (fd))
WRAP(int, link, (const char *a, const char *b), (a, b))
WRAP(int, linkat, (int da, const char *a, int db, const char *b, int flags), (da, a, db, b, flags))
WRAP(int, rename, (const char *a, const char *b), (a, b))
WRAP(int, renameat2, (int da, const char *a, int db, const char *b, unsigned flags), (da, a, db, b, flags))
WRAP(int, unlink, (const char *a), (a))
WRAP(int, unlinkat, (int d, const char *a, int flags), (d, a, flags))

// Closes in any case, as Linux does.
int close(int fd) {
  static int (*real)(int);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "close");
  const int fails = met(), code = errno;
  const int result = real(fd);
  if (!fails) return result;
  errno = code;
  return -1;
}

#define OPEN(name)                                                                                           \
  int name(const char *path, int flags, ...) {                                                               \
    static int (*real)(const char *, int, ...);                                                              \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name);                                                    \
    va_list more;                                                                                            \
    va_start(more, flags);                                                                                   \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? (mode_t)va_arg(more, int) : 0;                \
    va_end(more);                                                                                            \
    if ((flags & O_TMPFILE) == O_TMPFILE && getenv("TORTURE_NAMED")) {                                       \
      errno = EOPNOTSUPP;                                                                                    \
      return -1;                                                                                             \
    }                                                                                                        \
    return real(path, flags, mode);                                                                          \
  }
OPEN(open)
OPEN(open64)

struct Start {
  void *(*run)(void *);
  void *argument;
};

static void *counted(void *argument) {
  struct Start start = *(struct Start *)argument;
  free(argument);
  void *const result = start.run(start.argument);
  atomic_fetch_sub(&threads, 1);
  return result;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument) {
  static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
  const long most = number("TORTURE_THREADS", -1);
  if (most < 0) return real(thread, attributes, run, argument);
  struct Start *start = malloc(sizeof *start);
  if (!start || atomic_fetch_add(&threads, 1) >= most) {
    atomic_fetch_sub(&threads, 1);
    free(start);
    return EAGAIN;
  }
  start->run = run;
  start->argument = argument;
  return real(thread, attributes, counted, start);
}
