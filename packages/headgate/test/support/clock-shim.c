/*
 * Shifts the wall clock of one process, live. The offset, in microseconds, is read from a mapped file on every call.
 *
 * The time comes from the kernel by a direct system call. Looking up the real function with dlsym would allocate, and
 * Debian's Redis allocates with jemalloc, which asks for the time: an endless recursion.
 * Monotonic clocks are left alone, because the server's timers run on them.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset_us;

__attribute__((constructor)) static void map_offset(void) {
  const char *path = getenv("HEADGATE_CLOCK_OFFSET");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *page = mmap(NULL, sizeof *offset_us, PROT_READ, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) offset_us = page;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = syscall(SYS_clock_gettime, clock, now);
  if (failed || !offset_us || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
  int64_t offset = *offset_us, nanos = now->tv_nsec + offset % 1000000 * 1000;
  now->tv_sec += offset / 1000000 + (nanos >= 1000000000) - (nanos < 0);
  now->tv_nsec = (nanos + 1000000000) % 1000000000;
  return 0;
}

int gettimeofday(struct timeval *now, void *zone) {
  struct timespec precise;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &precise)) return -1;
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
