import PQueue from 'p-queue';
import type { Caller } from '../request.ts';

/** Lets some works of a process run at once. Those of a caller who has others under way run after those of the others. */
export class CallerTurns {
  readonly #turns: PQueue;
  /** How many works each caller has running or waiting. */
  readonly #asked = new Map<string, number>();

  constructor(atOnce: number) {
    this.#turns = new PQueue({ concurrency: atOnce });
  }

  async run<T>({ tokenId, userId }: Pick<Caller, 'tokenId' | 'userId'>, work: () => Promise<T>): Promise<T> {
    const who = userId ?? tokenId;
    const asked = this.#asked.get(who) ?? 0;
    this.#asked.set(who, asked + 1);
    try {
      return await this.#turns.add(work, { priority: -asked });
    } finally {
      const left = (this.#asked.get(who) ?? 1) - 1;
      if (left === 0) this.#asked.delete(who);
      else this.#asked.set(who, left);
    }
  }
}
