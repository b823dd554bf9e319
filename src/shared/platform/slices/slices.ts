/**
 * The limit of one event loop tick: scanning, parsing, hashing or serializing this much takes a few ms. Larger inputs are split, so that
 * other requests are served in between.
 */
export const timeSliceBytes = 1024 * 1024;

/** The limit of scans that report every value: even the densest values take only a few ms. */
export const denseSliceBytes = 128 * 1024;

/** Resolves after pending I/O events. */
export function nextSlice(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Yields to the event loop after every `sliceBytes`. */
export class Slices {
  readonly #sliceBytes: number;
  #spent = 0;

  constructor(sliceBytes = timeSliceBytes) {
    this.#sliceBytes = sliceBytes;
  }

  /** Call after processing `bytes`. */
  async spend(bytes: number): Promise<void> {
    this.#spent += bytes;
    if (this.#spent < this.#sliceBytes) return;
    this.#spent = 0;
    await nextSlice();
  }
}

/** The slices share memory with `bytes`. */
export function* slicesOf(bytes: Buffer, sliceBytes = timeSliceBytes): Generator<Buffer> {
  if (bytes.length <= sliceBytes) {
    yield bytes;
    return;
  }
  for (let at = 0; at < bytes.length; at += sliceBytes) yield bytes.subarray(at, at + sliceBytes);
}

/** Yields slices of at most `sliceBytes`, and about `sliceBytes` per event loop tick. */
export async function* inSlices(
  source: AsyncIterable<Buffer> | Iterable<Buffer>,
  sliceBytes = timeSliceBytes,
): AsyncGenerator<Buffer> {
  const slices = new Slices(sliceBytes);
  for await (const chunk of source) {
    for (const slice of slicesOf(chunk, sliceBytes)) {
      yield slice;
      await slices.spend(slice.length);
    }
  }
}

/** Feeds one slice per event loop tick. Scanners that report many small values need smaller slices. */
export async function scanInSlices(
  scanner: { write(chunk: Buffer): void },
  bytes: Buffer,
  sliceBytes = timeSliceBytes,
): Promise<void> {
  if (bytes.length <= sliceBytes) {
    scanner.write(bytes);
    return;
  }
  for (let at = 0; at < bytes.length; at += sliceBytes) {
    scanner.write(bytes.subarray(at, at + sliceBytes));
    await nextSlice();
  }
}

/** A computation pauses after this time. */
const sliceMs = 5;

/**
 * Each tick of the event loop runs one of the long computations, in the order of their requests. Otherwise, all of them would add their
 * time slices to the same tick.
 */
export class TimeSlices {
  readonly #waiting: (() => void)[] = [];
  #sliceBegan = Number.NEGATIVE_INFINITY;
  #isScheduled = false;

  /** Resolves in a tick in which no other computation gets a time slice. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#schedule();
    });
  }

  /** Pauses if the current time slice has been long enough. */
  async pause(): Promise<void> {
    if (performance.now() - this.#sliceBegan >= sliceMs) await this.next();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#sliceBegan = performance.now();
      this.#waiting.shift()?.();
      if (this.#waiting.length > 0) this.#schedule();
    });
  }
}
