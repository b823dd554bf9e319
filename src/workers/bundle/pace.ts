/**
 * The processor time of a write is estimated, in ms: for each stack, and by the bytes of its state, which is read and encrypted twice, compressed
 * once, and read back before the next write.
 */
const stackMs = 12;
const bytesPerMs = 14_000;
/** The bundle takes a twentieth of the processor time of a process, and a fifth for changes that wait: otherwise it would fall behind. */
const share = 20;
const lateShare = 5;
const lateSeconds = 20;
const maxPauseMs = 30_000;

/**
 * How long to wait after a write of a state of `bytes`. `waitedSeconds`: of the change that was written; null: the bundle lacked the stack, or
 * nothing had changed.
 */
export function pauseMs(bytes: number, tookMs: number, waitedSeconds: number | null): number {
  const isLate = waitedSeconds !== null && waitedSeconds >= lateSeconds;
  const pause = (stackMs + bytes / bytesPerMs) * (isLate ? lateShare : share) - tookMs;
  return Math.min(Math.max(pause, 0), maxPauseMs);
}
