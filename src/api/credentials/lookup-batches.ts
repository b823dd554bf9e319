interface Waiting<Question> {
  readonly question: Question;
  readonly source: string;
  readonly answer: PromiseWithResolvers<boolean>;
}

interface LookupBatchesOptions<Question> {
  /** Which of the questions are worth a look of their own, by their keys. */
  readonly ask: (questions: readonly Question[]) => Promise<ReadonlySet<string>>;
  /** Time from the beginning of one batch to that of the next, in ms. */
  readonly everyMs: number;
  /** Most questions that wait, in all and of one source. */
  readonly total: number;
  readonly perSource: number;
}

/** Asks for many tokens together, one statement at a time and a few per second, however many there are. */
export class LookupBatches<Question> {
  readonly #options: LookupBatchesOptions<Question>;
  #waiting = new Map<string, Waiting<Question>>();
  #bySource = new Map<string, number>();
  #isAsking = false;
  #lastBegan = Number.NEGATIVE_INFINITY;

  constructor(options: LookupBatchesOptions<Question>) {
    this.#options = options;
  }

  /** Whether the token is worth a look; null when as many as may wait already. Rejects with what the statement throws. */
  ask(source: string, key: string, question: Question): Promise<boolean> | null {
    const same = this.#waiting.get(key);
    if (same) return same.answer.promise;
    const own = this.#bySource.get(source) ?? 0;
    if (this.#waiting.size >= this.#options.total || own >= this.#options.perSource) return null;
    const answer = Promise.withResolvers<boolean>();
    this.#waiting.set(key, { question, source, answer });
    this.#bySource.set(source, own + 1);
    if (!this.#isAsking) void this.#run();
    return answer.promise;
  }

  async #run(): Promise<void> {
    this.#isAsking = true;
    while (this.#waiting.size > 0) {
      const waitMs = this.#lastBegan + this.#options.everyMs - performance.now();
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
      this.#lastBegan = performance.now();
      const batch = this.#waiting;
      this.#waiting = new Map();
      this.#bySource = new Map();
      try {
        const found = await this.#options.ask([...batch.values()].map(({ question }) => question));
        for (const [key, { answer }] of batch) answer.resolve(found.has(key));
      } catch (error) {
        for (const { answer } of batch.values()) answer.reject(error);
      }
    }
    this.#isAsking = false;
  }
}
