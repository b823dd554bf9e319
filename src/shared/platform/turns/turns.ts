/**
 * Bytes that one turn of the event loop may scan, parse, hash or write out: a few ms. What is larger is cut, and other calls are
 * answered in between.
 */
export const turnBytes = 1024 * 1024;

/** Resolves in a later turn of the event loop, after what has come in meanwhile. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Counts work and gives way to others after each `turnBytes` of it. */
export class Turns {
  #spent = 0;

  /** Call after work over `bytes`. */
  async spend(bytes: number): Promise<void> {
    this.#spent += bytes;
    if (this.#spent < turnBytes) return;
    this.#spent = 0;
    await nextTurn();
  }
}

/** The bytes in pieces of at most `turnBytes`, which share memory with them. */
export function* slicesOf(bytes: Buffer): Generator<Buffer> {
  if (bytes.length <= turnBytes) {
    yield bytes;
    return;
  }
  for (let at = 0; at < bytes.length; at += turnBytes) yield bytes.subarray(at, at + turnBytes);
}

/** The same bytes, in pieces of at most `turnBytes` and as many of them in one turn. */
export async function* inTurns(source: AsyncIterable<Buffer> | Iterable<Buffer>): AsyncGenerator<Buffer> {
  const turns = new Turns();
  for await (const chunk of source) {
    for (const slice of slicesOf(chunk)) {
      yield slice;
      await turns.spend(slice.length);
    }
  }
}

/** Feeds `bytes` to something that takes a text in pieces, a piece in each turn. */
export async function scanInTurns(scanner: { write(chunk: Buffer): void }, bytes: Buffer): Promise<void> {
  if (bytes.length <= turnBytes) {
    scanner.write(bytes);
    return;
  }
  for (const slice of slicesOf(bytes)) {
    scanner.write(slice);
    await nextTurn();
  }
}
