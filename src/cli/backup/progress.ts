const everyMs = 1_000;

/** Reports the progress of long work on stderr, once a second on a terminal. */
export class Progress {
  readonly #began = performance.now();
  #printedAt = 0;

  report(what: string, done: number, total: number): void {
    if (!process.stderr.isTTY) return;
    const now = performance.now();
    if (now - this.#printedAt < everyMs && done < total) return;
    this.#printedAt = now;
    const leftSeconds = Math.ceil((((now - this.#began) / 1000) * (total - done)) / Math.max(done, 1));
    const left = done === total ? '' : `, about ${leftSeconds} s left`;
    process.stderr.write(`\r\u001b[K${what}: ${done} of ${total}${left}${done === total ? '\n' : ''}`);
  }
}
