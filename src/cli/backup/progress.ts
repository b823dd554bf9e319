const everyMs = 1_000;
const everyMsInLogs = 60_000;

/** Reports the progress of long work on stderr: once a second on a terminal, otherwise a line each minute. */
export class Progress {
  #step = '';
  #began = performance.now();
  #printedAt = this.#began;

  report(step: string, done: number, total: number): void {
    const now = performance.now();
    // Each step has its own speed.
    if (step !== this.#step) {
      this.#step = step;
      this.#began = now;
    }
    const { isTTY } = process.stderr;
    const isLast = done === total && isTTY;
    if (!isLast && now - this.#printedAt < (isTTY ? everyMs : everyMsInLogs)) return;
    this.#printedAt = now;
    const text = progressText(step, { done, total, seconds: (now - this.#began) / 1000 });
    process.stderr.write(isTTY ? `\r\u001b[K${text}${done === total ? '\n' : ''}` : `${text}\n`);
  }
}

/** For example `blobs: 40 of 100, about 6 s left`. */
export function progressText(
  step: string,
  { done, seconds, total }: { readonly done: number; readonly seconds: number; readonly total: number },
): string {
  const left = done === 0 || done >= total ? '' : `, about ${Math.ceil((seconds * (total - done)) / done)} s left`;
  return `${step}: ${done} of ${total}${left}`;
}
