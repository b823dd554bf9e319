import type { BlobStore } from '../../src/shared/platform/blobs/blob-store.ts';

/** One by one, in the order of their arrival. */
export class DelayedPuts {
  #hold = 0;
  readonly held: (() => void)[] = [];

  /** Holds the next `count` puts. */
  hold(count: number): void {
    this.#hold = count;
  }

  letGo(index: number): void {
    this.held[index]?.();
  }

  /** Releases all held puts. */
  reset(): void {
    this.#hold = 0;
    for (const letGo of this.held.splice(0)) letGo();
  }

  over(store: BlobStore): BlobStore {
    const put: BlobStore['put'] = async (key, body, options) => {
      const stored = await store.put(key, body, options);
      if (this.#hold === 0) return stored;
      this.#hold--;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.held.push(resolve);
      await promise;
      return stored;
    };
    return new Proxy(store, {
      get: (target, name) => {
        if (name === 'put') return put;
        const member: unknown = Reflect.get(target, name);
        return typeof member === 'function' ? member.bind(target) : member;
      },
    });
  }
}
