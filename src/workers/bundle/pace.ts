/**
 * The estimated processor time of a write, in ms: a part per stack, and a part for the bytes of its state, which is read and encrypted
 * twice, compressed once, and read back before the next write.
 */
const stackMs = 12;
const bytesPerMs = 14_000;
/**
 * The bundle takes a twentieth of a process's processor time, or a fifth for changes that have waited, so that it does not fall behind.
 */
const share = 20;
const lateShare = 5;
const lateSeconds = 20;
const maxPauseMs = 30_000;

/**
 * `bytes` is the size of the written state. `waitedSeconds` is the age of the written change; null if the bundle lacked the stack, or
 * nothing had changed.
 */
export function pauseMs(bytes: number, tookMs: number, waitedSeconds: number | null): number {
  const isLate = waitedSeconds !== null && waitedSeconds >= lateSeconds;
  const pause = (stackMs + bytes / bytesPerMs) * (isLate ? lateShare : share) - tookMs;
  return Math.min(Math.max(pause, 0), maxPauseMs);
}
