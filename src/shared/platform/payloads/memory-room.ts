import { Pace, type Place } from './arriving-body.ts';
import { NoRoomError, RoomLostError } from './payload-store.ts';
import {
  type ArrivingBody,
  defaultRoomTimes,
  isOverLimit,
  mayTake,
  mayWait,
  type RoomState,
  type RoomTimes,
  whoGivesWay,
} from './room-rules.ts';

const lookMs = 250;

class PlaceInMemory implements ArrivingBody, Place {
  readonly #room: MemoryRoom;
  readonly #stallMs: number;
  readonly claim: number | null;
  readonly yields: boolean;
  readonly share: string;
  readonly shareLimit: number | null;
  readonly pace = new Pace();
  /** Whether it waits to get in rather than be refused. */
  readonly waits: boolean;
  held = 0;
  blockedSince: number | null = null;
  leaves = false;
  waiting: { bytes: number; resolve: () => void; reject: (error: Error) => void } | null = null;
  onLost: (error: Error) => void = () => {};

  constructor(room: MemoryRoom, body: NewBody, times: RoomTimes) {
    this.#room = room;
    this.claim = body.claim;
    this.waits = body.waits;
    this.share = body.share ?? '';
    this.shareLimit = body.shareLimit ?? null;
    this.yields = !body.waits || body.claim === null;
    this.#stallMs = this.yields ? times.stallMs.withYielding : times.stallMs.withOthers;
  }

  get stalled(): boolean {
    return this.pace.waitedMs >= this.#stallMs;
  }

  get lost(): boolean {
    return this.leaves;
  }

  take(bytes: number): Promise<void> {
    return this.#room.take(this, bytes);
  }
}

export type MemoryPlace = PlaceInMemory;

/** A body that asks for a place; one that `waits` is not refused while it may still get room. */
export interface NewBody {
  readonly claim: number | null;
  readonly waits: boolean;
  readonly share?: string;
  readonly shareLimit?: number | null;
}

/** Room in this process for the bodies that it takes in, by `room-rules.ts`. */
export class MemoryRoom {
  readonly #capacity: number;
  readonly #times: RoomTimes;
  readonly #whole = new Map<string, number>();
  #arriving: PlaceInMemory[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(capacity: number, times: RoomTimes = defaultRoomTimes) {
    this.#capacity = capacity;
    this.#times = times;
  }

  get used(): number {
    let used = 0;
    for (const bytes of this.#whole.values()) used += bytes;
    return this.#arriving.reduce((sum, { held }) => sum + held, used);
  }

  /** A place for a body that will have `claim` bytes. */
  enter(body: NewBody): MemoryPlace {
    return new PlaceInMemory(this, body, this.#times);
  }

  async take(place: PlaceInMemory, bytes: number): Promise<void> {
    if (place.leaves) throw new RoomLostError();
    if (!this.#arriving.includes(place)) this.#arriving.push(place);
    if (mayTake(this.#state(), place, bytes)) {
      place.held += bytes;
      return;
    }
    if (place.held === 0 && !place.waits && !mayWait(this.#state(), place, bytes)) throw new NoRoomError();
    place.blockedSince = performance.now();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    place.waiting = { bytes, resolve, reject };
    this.#timer ??= setInterval(() => this.#settle(), lookMs).unref();
    this.#settle();
    await promise;
  }

  /** The body is whole: it keeps `bytes` until they are given back. */
  keep(place: PlaceInMemory, bytes: number): void {
    if (bytes > 0) this.#whole.set(place.share, (this.#whole.get(place.share) ?? 0) + bytes);
    this.leave(place);
  }

  /** Gives back what a body has that is not whole. */
  leave(place: PlaceInMemory): void {
    this.#arriving = this.#arriving.filter((each) => each !== place);
    place.held = 0;
    this.#settle();
  }

  /** Gives back what a whole body had. */
  give(bytes: number, share = ''): void {
    const left = (this.#whole.get(share) ?? 0) - bytes;
    if (left > 0) this.#whole.set(share, left);
    else this.#whole.delete(share);
    this.#settle();
  }

  #state(): RoomState<PlaceInMemory> {
    return { capacity: this.#capacity, whole: this.#whole, arriving: this.#arriving };
  }

  /** Gives room to whoever waits and may have it, the oldest first; sends away who has waited too long or must make room. */
  #settle(): void {
    const now = performance.now();
    for (const place of [...this.#arriving]) {
      const { waiting } = place;
      if (!waiting || place.blockedSince === null) continue;
      if (mayTake(this.#state(), place, waiting.bytes)) {
        place.held += waiting.bytes;
        stopWaiting(place);
        waiting.resolve();
        continue;
      }
      const limit = place.waits ? this.#times.waitMs : this.#times.yieldingWaitMs;
      if (now - place.blockedSince >= limit) {
        stopWaiting(place);
        waiting.reject(new NoRoomError(isOverLimit(this.#state(), place, waiting.bytes)));
        continue;
      }
      for (const leaving of whoGivesWay(this.#state(), place, waiting.bytes, now, this.#times.patience))
        sendAway(leaving);
    }
    if (this.#arriving.some(({ waiting }) => waiting)) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

function stopWaiting(place: PlaceInMemory): void {
  place.waiting = null;
  place.blockedSince = null;
}

function sendAway(place: PlaceInMemory): void {
  const { waiting } = place;
  place.leaves = true;
  stopWaiting(place);
  waiting?.reject(new RoomLostError());
  place.onLost(new RoomLostError());
}
