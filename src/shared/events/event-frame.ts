/** A reader decompresses a whole frame to find an event. Frames of 1 MiB would take an eighth less space. */
export const frameBytes = 256 * 1024;

export interface EventHead {
  readonly sequence: number;
  /** Empty if the event has its own `type`. */
  readonly type: string;
  readonly urn: string | null;
  /** Size of the event's text. */
  readonly bytes: number;
}

export interface EventToArchive extends EventHead {
  readonly text: () => AsyncIterable<Buffer> | Iterable<Buffer>;
}

/**
 * The text begins with a line of JSON that lists the events. Their texts follow without separators. An event larger than a frame has its
 * own frame with as much of its text as fits, followed by frames with only the rest of the text.
 */
export interface Frame {
  readonly text: Buffer;
  readonly heads: readonly EventHead[];
}

export interface FramedEvent extends EventHead {
  /** The frame's text may contain only the beginning of the event. */
  readonly start: number;
}

/** Sequence, size in bytes, index of the type, and index of the resource or -1. */
type Entry = readonly [number, number, number, number];

interface Header {
  readonly types: readonly string[];
  readonly urns: readonly string[];
  readonly events: readonly Entry[];
}

const emptyHeader = headerOf({ types: [], urns: [], events: [] });

/** Events come in order of sequence. Throws if a text does not have the stated size. */
export async function* framesOf(events: AsyncIterable<EventToArchive>, limit = frameBytes): AsyncGenerator<Frame> {
  let frame = new FrameWriter(limit);
  for await (const event of events) {
    if (!frame.isEmpty && !frame.hasCapacityFor(event)) {
      yield frame.end();
      frame = new FrameWriter(limit);
    }
    if (!frame.hasCapacityFor(event)) {
      yield* framesOfOne(event, limit);
      continue;
    }
    const text: Buffer[] = [];
    for await (const chunk of event.text()) text.push(chunk);
    assertSize(
      event,
      text.reduce((bytes, chunk) => bytes + chunk.length, 0),
    );
    frame.add(event, text);
  }
  if (!frame.isEmpty) yield frame.end();
}

/** Only events that begin in the frame. */
export function eventsOf(text: Buffer): FramedEvent[] {
  const headerEnd = text.indexOf('\n');
  const { types, urns, events } = JSON.parse(text.toString('utf8', 0, headerEnd)) as Header;
  let start = headerEnd + 1;
  return events.map(([sequence, bytes, type, urn]) => {
    const event = { sequence, bytes, type: types[type] as string, urn: urns[urn] ?? null, start };
    start += bytes;
    return event;
  });
}

async function* framesOfOne(event: EventToArchive, frameLimit: number): AsyncGenerator<Frame> {
  let chunks: Buffer[] = [];
  let bytes = 0;
  let total = 0;
  let isFirst = true;
  let limit = frameLimit - new FrameWriter(frameLimit).sizeWith(event);
  const take = (): Frame => {
    const text = Buffer.concat(chunks, bytes);
    chunks = [];
    bytes = 0;
    limit = frameLimit;
    if (!isFirst) return { text, heads: [] };
    isFirst = false;
    const frame = new FrameWriter(frameLimit);
    frame.add(event, [text]);
    return frame.end();
  };
  for await (const chunk of event.text()) {
    total += chunk.length;
    for (let rest = chunk; rest.length > 0; ) {
      const part = rest.subarray(0, limit - bytes);
      chunks.push(part);
      bytes += part.length;
      rest = rest.subarray(part.length);
      if (bytes === limit) yield take();
    }
  }
  if (bytes > 0) yield take();
  assertSize(event, total);
}

function assertSize({ sequence, bytes }: EventHead, found: number): void {
  if (found !== bytes) throw new Error(`Event ${sequence} has ${found} bytes instead of ${bytes}`);
}

class FrameWriter {
  readonly #limit: number;
  readonly #types = new Map<string, number>();
  readonly #urns = new Map<string, number>();
  readonly #entries: Entry[] = [];
  readonly #heads: EventHead[] = [];
  readonly #texts: Buffer[] = [];
  #headerBytes = emptyHeader.length;
  #textBytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get isEmpty(): boolean {
    return this.#entries.length === 0;
  }

  hasCapacityFor(event: EventHead): boolean {
    return this.sizeWith(event) + event.bytes <= this.#limit;
  }

  /** Size of the frame with this event in the list, but without its text. At most a few bytes above the final size. */
  sizeWith({ sequence, bytes, type, urn }: EventHead): number {
    let added = JSON.stringify([sequence, bytes, this.#types.size, this.#urns.size]).length + 1;
    if (!this.#types.has(type)) added += jsonBytes(type);
    if (urn !== null && !this.#urns.has(urn)) added += jsonBytes(urn);
    return this.#headerBytes + this.#textBytes + added;
  }

  add(head: EventHead, text: readonly Buffer[]): void {
    this.#headerBytes = this.sizeWith(head) - this.#textBytes;
    const { sequence, bytes, type, urn } = head;
    this.#entries.push([sequence, bytes, numberOf(this.#types, type), urn === null ? -1 : numberOf(this.#urns, urn)]);
    this.#heads.push(head);
    for (const chunk of text) {
      this.#texts.push(chunk);
      this.#textBytes += chunk.length;
    }
  }

  end(): Frame {
    const header = headerOf({ types: [...this.#types.keys()], urns: [...this.#urns.keys()], events: this.#entries });
    return { text: Buffer.concat([header, ...this.#texts]), heads: this.#heads };
  }
}

function numberOf(numbers: Map<string, number>, text: string): number {
  const known = numbers.get(text);
  if (known !== undefined) return known;
  numbers.set(text, numbers.size);
  return numbers.size - 1;
}

function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) + 1;
}

function headerOf(header: Header): Buffer {
  return Buffer.from(`${JSON.stringify(header)}\n`);
}
