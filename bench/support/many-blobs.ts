import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { MoveParts } from '../../src/shared/blob-moves/begin-move.ts';
import { copyBlobs } from '../../src/shared/blob-moves/compare-locations.ts';
import { BlobNotFoundError, type BlobPage, type BlobStore } from '../../src/shared/platform/blobs/blob-store.ts';

/** What a copy of many blobs took. */
export interface ManyBlobsResult {
  readonly blobs: number;
  readonly copied: number;
  /** Calls of stores and database, by name. */
  readonly calls: Readonly<Record<string, number>>;
  /** Largest heap in use after a collection, above that at the start. */
  readonly heapBytes: number;
}

const pageSize = 1_000;
const rowless = 'audit/';
const withRow = 'checkpoints/';

/** Every fifth blob is there already. Half of them have rows, the others are listed. */
export async function copyManyBlobs(count: number): Promise<ManyBlobsResult> {
  const calls: Record<string, number> = {};
  const note = (name: string): void => {
    calls[name] = (calls[name] ?? 0) + 1;
  };
  const half = count / 2;
  const [main, other] = [new Simulated('main', half, note), new Simulated('other', half, note)];
  main.fill(1);
  other.fill(5);
  const listAfter = async (after: string, limit: number) => {
    note('rows.listAfter');
    const from = after === '' ? 0 : numberOf(after) + 1;
    const length = Math.max(0, Math.min(limit, half - from));
    return Array.from({ length }, (_, at) => ({ key: keyOf(withRow, from + at), isReferenced: true }));
  };
  const rows = { count: async () => half, listAfter };
  collect();
  const before = process.memoryUsage().heapUsed;
  let heapBytes = 0;
  // Collections take most of the time of a small run.
  const measureEvery = Math.max(5_000, count / 4);
  const onProgress = ({ done }: { readonly done: number }): void => {
    if (done % measureEvery !== 0) return;
    collect();
    heapBytes = Math.max(heapBytes, process.memoryUsage().heapUsed - before);
  };
  const parts = { blobRows: rows } as unknown as MoveParts;
  const stores = { main: main.store, other: other.store };
  const { blobs, copied } = await copyBlobs(parts, { ...stores, row: {} as never }, { onProgress });
  return { blobs, copied, calls, heapBytes };
}

const keyOf = (prefix: string, number: number): string => `${prefix}${String(number).padStart(9, '0')}`;
const numberOf = (key: string): number => Number(key.slice(key.indexOf('/') + 1));

/** Knows of each blob only whether it is there. */
class Simulated {
  readonly #present: Readonly<Record<string, Uint8Array>>;
  readonly #name: string;
  readonly #note: (call: string) => void;

  constructor(name: string, half: number, note: (call: string) => void) {
    this.#name = name;
    this.#note = note;
    this.#present = { [rowless]: new Uint8Array(half), [withRow]: new Uint8Array(half) };
  }

  /** One of so many blobs is there. */
  fill(every: number): void {
    for (const flags of Object.values(this.#present))
      for (let number = 0; number < flags.length; number += every) flags[number] = 1;
  }

  get store(): BlobStore {
    const call =
      <A extends unknown[], R>(name: string, run: (...args: A) => R): ((...args: A) => Promise<R>) =>
      async (...args) => {
        this.#note(`${this.#name}.${name}`);
        return run(...args);
      };
    const methods: Partial<BlobStore> = {
      list: call('list', (prefix: string, after?: string) => this.#list(prefix, after)),
      findAbsent: call('findAbsent', (keys: readonly string[]) => keys.filter((key) => !this.#has(key))),
      open: call('open', (key: string) => {
        if (!this.#has(key)) throw new BlobNotFoundError(key);
        return (async function* () {
          yield Buffer.from(key);
        })();
      }),
      put: async (key, body) => {
        this.#note(`${this.#name}.put`);
        let storedBytes = 0;
        for await (const part of body) storedBytes += part.length;
        this.#flagsOf(key)[numberOf(key)] = 1;
        return { storedBytes };
      },
    };
    return methods as BlobStore;
  }

  #flagsOf(key: string): Uint8Array {
    return this.#present[key.slice(0, key.indexOf('/') + 1)] ?? new Uint8Array();
  }

  #has(key: string): boolean {
    return this.#flagsOf(key)[numberOf(key)] === 1;
  }

  #list(prefix: string, after?: string): BlobPage {
    const all = this.#flagsOf(prefix).length;
    const from = after === undefined ? 0 : numberOf(after) + 1;
    const length = Math.max(0, Math.min(pageSize, all - from));
    const blobs = Array.from({ length }, (_, at) => ({
      key: keyOf(prefix, from + at),
      storedBytes: 1,
      modifiedAt: new Date(0),
    }));
    return { blobs, next: from + length < all ? (blobs.at(-1)?.key ?? null) : null };
  }
}

let collector: (() => void) | null = null;
function collect(): void {
  if (collector === null) {
    setFlagsFromString('--expose-gc');
    collector = runInNewContext('gc') as () => void;
  }
  collector();
}
