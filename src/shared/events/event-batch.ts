import { InvalidRequestError, PayloadTooLargeError } from '../platform/errors/errors.ts';
import { JsonScanner, type ValueListener } from '../platform/json/json-scanner.ts';
import { scanInTurns } from '../platform/turns/turns.ts';
import type { EngineEventText } from './event-repository.ts';

/** The CLI sends at most 50 (pkg/backend/httpstate/client/client.go); a small body can hold millions. */
const maxEvents = 100_000;

/** Longest type and URN, in bytes of JSON, that are kept beside an event. Longer ones stand in the event alone. */
const maxTypeBytes = 256;
const maxUrnBytes = 8 * 1024;

const envelope: ReadonlySet<unknown> = new Set(['sequence', 'timestamp']);

/** A batch of engine events, cut apart: each event's own bytes, and the resource changes of a summary among them. */
export interface EventBatch {
  readonly events: readonly EngineEventText[];
  readonly resourceChanges: string | null;
}

/**
 * Cuts `{"events": [...]}` into its events. Of an event only what is needed to list it is read: payloads that we do not know pass
 * through. In the place of an event above `maxEventBytes` stands one that says so: the CLI logs a refusal of the batch and goes on,
 * so that all the events of the batch would be missing. Throws InvalidRequestError, JsonSyntaxError, PayloadTooLargeError.
 */
export async function splitEventBatch(body: Buffer, maxEventBytes: number): Promise<EventBatch> {
  const splitter = new EventBatchSplitter(body, maxEventBytes);
  const scanner = new JsonScanner({ reportDepth: 5, onValue: splitter.take });
  await scanInTurns(scanner, body);
  scanner.end();
  return splitter.end();
}

class EventBatchSplitter {
  readonly #body: Buffer;
  readonly #maxEventBytes: number;
  #events: EngineEventText[] = [];
  #found: EngineEventText[] = [];
  #resourceChanges: string | null = null;
  #isBatch = false;
  #event = new EventReader();

  constructor(body: Buffer, maxEventBytes: number) {
    this.#body = body;
    this.#maxEventBytes = maxEventBytes;
  }

  readonly take: ValueListener = (path, kind, start, end) => {
    if (path[0] !== 'events') return;
    if (path.length === 1) {
      this.#isBatch = kind === 'array';
      // Of a repeated member the last counts.
      this.#events = this.#found;
      this.#found = [];
    } else if (path.length === 2) {
      if (kind !== 'object') throw new InvalidRequestError(`events[${path[1]}] is not an object`);
      const event = this.#event;
      if (event.sequence === null) throw new InvalidRequestError(`events[${path[1]}] has no sequence`);
      if (this.#found.length === maxEvents) throw new PayloadTooLargeError(`A batch has at most ${maxEvents} events`);
      this.#found.push(
        end - start > this.#maxEventBytes
          ? event.tooLarge(end - start, this.#maxEventBytes)
          : event.asSent(this.#body.toString('utf8', start, end)),
      );
      this.#event = new EventReader();
    } else if (path.length === 3) {
      this.#event.member(path, kind, this.#text(start, Math.min(end, start + 32)));
    } else if (kind === 'string' && isUrnPath(path)) {
      if (end - start <= maxUrnBytes) this.#event.urnAt(path, this.#text(start, end));
    } else if (path.length === 4 && path[2] === 'summaryEvent' && path[3] === 'resourceChanges' && kind === 'object') {
      this.#resourceChanges = readCounts(this.#text(start, end));
    }
  };

  end(): EventBatch {
    if (!this.#isBatch) throw new InvalidRequestError('"events" is not an array');
    return { events: this.#events, resourceChanges: this.#resourceChanges };
  }

  #text(start: number, end: number): string {
    return this.#body.toString('utf8', start, end);
  }
}

function isUrnPath(path: readonly (string | number)[]): boolean {
  if (path.length === 4) return path[3] === 'urn' || path[3] === 'resourceUrn';
  return path[3] === 'metadata' && path[4] === 'urn';
}

/** What is read of one event. */
class EventReader {
  sequence: number | null = null;
  #timestamp = '0';
  #type: string | null = null;
  #hasType = false;
  #urn: string | null = null;
  /** Of the payload that is being read: metadata.urn comes before urn, and that before resourceUrn. */
  #urns: (string | null)[] = [null, null, null];

  member([, index, name]: readonly (string | number)[], kind: string, text: string): void {
    if (name === 'sequence') {
      this.sequence = kind === 'number' && /^\d{1,15}$/.test(text) ? Number(text) : null;
      if (this.sequence === null)
        throw new InvalidRequestError(`events[${index}].sequence is not a whole number from 0`);
    } else if (name === 'timestamp' && kind === 'number' && /^\d{1,15}$/.test(text)) this.#timestamp = text;
    else if (name === 'type') this.#hasType = true;
    if (!envelope.has(name)) this.#type ??= String(name);
    this.#urn ??= this.#urns.find((urn) => urn !== null) ?? null;
    this.#urns = [null, null, null];
  }

  urnAt(path: readonly (string | number)[], json: string): void {
    const rank = path.length === 5 ? 0 : path[3] === 'urn' ? 1 : 2;
    this.#urns[rank] = asText(JSON.parse(json) as string);
  }

  asSent(text: string): EngineEventText {
    return { sequence: this.sequence as number, text, type: this.#typeText(), urn: this.#urn };
  }

  tooLarge(bytes: number, limit: number): EngineEventText {
    const what = this.#hasType ? 'event' : this.#typeText() || 'event';
    const diagnostic = {
      ...(this.#urn === null ? {} : { urn: this.#urn }),
      message: `The ${what} with the sequence number ${this.sequence} was not stored: it has ${bytes} bytes, and the server stores at most ${limit} per event (HOLDFAST_MAX_EVENT_BYTES).\n`,
      color: 'never',
      severity: 'warning',
    };
    const text = `{"sequence":${this.sequence},"timestamp":${this.#timestamp},"diagnosticEvent":${JSON.stringify(diagnostic)}}`;
    return { sequence: this.sequence as number, text, type: 'diagnosticEvent', urn: this.#urn };
  }

  #typeText(): string {
    if (this.#hasType || this.#type === null || Buffer.byteLength(this.#type) > maxTypeBytes) return '';
    return asText(this.#type) ?? '';
  }
}

/** Null for what Postgres does not take as text. */
function asText(text: string): string | null {
  return text.isWellFormed() && !text.includes('\0') ? text : null;
}

function readCounts(text: string): string {
  const counts = Object.entries(JSON.parse(text) as Record<string, unknown>).filter(([, count]) =>
    Number.isSafeInteger(count),
  );
  return JSON.stringify(Object.fromEntries(counts));
}
