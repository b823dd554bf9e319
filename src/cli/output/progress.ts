const everyMs = 1_000;
const everyMsInLogs = 60_000;

/** The progress of a step. `total` is null if unknown. */
interface StepProgress {
  readonly done: number;
  readonly total: number | null;
}

/** Reports the progress of long work on stderr: once a second on a terminal, otherwise one line a minute. */
export class Progress {
  #step = '';
  #began = performance.now();
  #printedAt = this.#began;

  report(step: string, done: number, total: number | null): void {
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

  /** Ends the line on a terminal, for steps without a known total. */
  end(): void {
    if (process.stderr.isTTY && this.#step !== '') process.stderr.write('\r\u001b[K');
  }
}

/** For example `blobs: 40 of 100, about 6 s left`. */
export function progressText(
  step: string,
  { done, seconds, total }: StepProgress & { readonly seconds: number },
): string {
  if (total === null) return `${step}: ${done}`;
  const left = done === 0 || done >= total ? '' : `, about ${Math.ceil((seconds * (total - done)) / done)} s left`;
  return `${step}: ${done} of ${total}${left}`;
}

const randomId = /^([0-9a-f]{8})-[0-9a-f]{4}-4[0-9a-f]{3}-/;

/**
 * Estimates the number of rows from the number that was read, in the order of random ids, up to this id; null if the id is not random.
 * Counting the rows would take long.
 */
export function estimateTotal(done: number, id: string): number | null {
  const [, start] = randomId.exec(id) ?? [];
  if (start === undefined) return null;
  return Math.max(done, Math.round((done * 2 ** 32) / (Number.parseInt(start, 16) + 1)));
}
