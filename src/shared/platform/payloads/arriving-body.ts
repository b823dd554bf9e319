import { PayloadTooLargeError } from '../errors/errors.ts';
import { type PayloadOptions, RoomLostError } from './payload-store.ts';

/** What a sender has to send while it is waited for, lest it has stalled. */
const paceBytes = 32 * 1024;

/** Tells a sender that says next to nothing from one that is at work. */
export class Pace {
  #bytes = 0;
  #waitedMs = 0;
  #askedAt: number | null = null;

  /** The sender is waited for from now on. */
  asked(): void {
    this.#askedAt = performance.now();
  }

  /** This much has come. */
  came(bytes: number): void {
    this.#waitedMs += performance.now() - (this.#askedAt ?? performance.now());
    this.#askedAt = null;
    this.#bytes += bytes;
    if (this.#bytes < paceBytes) return;
    this.#bytes = 0;
    this.#waitedMs = 0;
  }

  /** How long the sender has been waited for since it last sent as much as it should, in ms; 0 while it is not waited for. */
  get waitedMs(): number {
    return this.#askedAt === null ? 0 : this.#waitedMs + performance.now() - this.#askedAt;
  }
}

/** A body's place in a room. */
export interface Place {
  readonly pace: Pace;
  /** Resolves once there is room for `bytes` more. Throws NoRoomError and RoomLostError. */
  take(bytes: number): Promise<void>;
  /** Set once the place is lost. */
  readonly lost: boolean;
  /** Told when the place is lost while the body is being waited for. */
  onLost: (error: Error) => void;
}

/** Bytes that a body has room for ahead of their coming. */
const stepBytes = 1024 * 1024;

/**
 * The body as it arrives, read no further than there is room for it. Throws PayloadTooLargeError, NoRoomError, RoomLostError
 * and the body's own error.
 */
export async function* arriving(
  body: AsyncIterable<Buffer>,
  place: Place,
  { declaredBytes, maxBytes }: PayloadOptions,
  capacity: number,
): AsyncGenerator<Buffer> {
  assertMayCome(declaredBytes, maxBytes);
  const step = Math.max(Math.min(stepBytes, Math.floor(capacity / 8)), 1);
  let room = 0;
  let bytes = 0;
  const makeRoom = async (needed: number): Promise<void> => {
    const ahead = Math.min(step, (declaredBytes ?? maxBytes) - room);
    const more = Math.max(needed, ahead);
    await place.take(more);
    room += more;
  };
  if (declaredBytes !== 0) await makeRoom(1);
  const iterator = body[Symbol.asyncIterator]();
  let ended = false;
  try {
    for (;;) {
      if (place.lost) throw new RoomLostError();
      const next = Promise.withResolvers<IteratorResult<Buffer>>();
      place.onLost = next.reject;
      place.pace.asked();
      iterator.next().then(next.resolve, next.reject);
      const { done, value } = await next.promise;
      if (done) {
        ended = true;
        return;
      }
      place.pace.came(value.length);
      bytes += value.length;
      if (bytes > maxBytes) throw tooLarge(maxBytes);
      if (bytes > room) await makeRoom(bytes - room);
      yield value;
    }
  } finally {
    place.onLost = () => {};
    // Not waited for: a sender that is silent would hold up the answer.
    if (!ended) void iterator.return?.().catch(() => {});
  }
}

/** Throws PayloadTooLargeError for a body that says itself that it is too large. */
function assertMayCome(declaredBytes: number | null, maxBytes: number): void {
  if (declaredBytes !== null && declaredBytes > maxBytes) throw tooLarge(maxBytes);
}

function tooLarge(maxBytes: number): PayloadTooLargeError {
  return new PayloadTooLargeError(`The body is larger than the ${maxBytes} bytes that this server accepts`);
}
