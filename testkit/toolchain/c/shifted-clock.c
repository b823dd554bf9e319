/*
 * Preloaded into a program whose clock a test sets: adds the seconds in the file TEST_CLOCK_FILE, an int64 in the
 * machine's byte order, to the time of day. The file is mapped once, and nothing here allocates or locks: Postgres asks
 * for the time in signal handlers, where libfaketime, which opens its file at each call, corrupts the heap.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t none = 0;
static const volatile int64_t *shift = &none;
static int (*machine_clock)(clockid_t, struct timespec *);

__attribute__((constructor)) static void open_clock(void) {
  machine_clock = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  const char *path = getenv("TEST_CLOCK_FILE");
  int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void *mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (mapped != MAP_FAILED) shift = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  /* Other constructors may ask before ours has run. */
  int result = machine_clock == NULL ? (int)syscall(SYS_clock_gettime, clock, now) : machine_clock(clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *shift;
  return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  (void)zone;
  struct timespec exact;
  if (clock_gettime(CLOCK_REALTIME, &exact) != 0) return -1;
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *seconds) {
  struct timespec exact;
  if (clock_gettime(CLOCK_REALTIME, &exact) != 0) return -1;
  if (seconds != NULL) *seconds = exact.tv_sec;
  return exact.tv_sec;
}
