import { InvalidRequestError, PayloadTooLargeError } from '../platform/errors/errors.ts';
import { JsonScanner, type ValueListener } from '../platform/json/json-scanner.ts';
import { denseSliceBytes, scanInSlices } from '../platform/slices/slices.ts';
import { changeCounts } from '../updates/change-counts.ts';
import type { EngineEventText } from './event-repository.ts';

/** Maximum events of a batch. The CLI sends at most 50 (pkg/backend/httpstate/client/client.go), but a small body can contain millions. */
const maxEvents = 100_000;

/** Longer types and URNs are stored only within the event. */
const maxTypeBytes = 256;
const maxUrnBytes = 8 * 1024;

/** Readers skip longer counts. */
const maxCountsBytes = 64 * 1024;

const envelope: ReadonlySet<unknown> = new Set(['sequence', 'timestamp', 'type']);

/** `resourceChanges` is that of a summary event. */
export interface EventBatch {
  readonly events: readonly EngineEventText[];
  readonly resourceChanges: string | null;
}

/**
 * Splits `{"events": [...]}`. Reads only the fields for listing an event, so unknown payloads pass through. An event above `maxEventBytes`
 * is replaced by a notice: if the batch was rejected instead, the CLI would only log the rejection, and all events of the batch would be
 * missing. Throws InvalidRequestError, JsonSyntaxError, PayloadTooLargeError.
 */
export async function splitEventBatch(body: Buffer, maxEventBytes: number): Promise<EventBatch> {
  const splitter = new EventBatchSplitter(body, maxEventBytes);
  const scanner = new JsonScanner({ reportDepth: 5, onValue: splitter.onValue, skips: isUnread });
  await scanInSlices(scanner, body, denseSliceBytes);
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
  /** Null before the first member. */
  #memberEnd: number | null = null;

  constructor(body: Buffer, maxEventBytes: number) {
    this.#body = body;
    this.#maxEventBytes = maxEventBytes;
  }

  readonly onValue: ValueListener = (path, kind, start, end) => {
    if (path[0] !== 'events') return;
    if (path.length === 1) {
      this.#isBatch = kind === 'array';
      // If a member is repeated, the last one counts.
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
          : event.asSent(this.#withoutType(start, end)),
      );
      this.#event = new EventReader();
      this.#memberEnd = null;
    } else if (path.length === 3) {
      this.#event.addMember(path, kind, kind === 'number' ? this.#text(start, Math.min(end, start + 32)) : '');
      if (path[2] === 'type')
        this.#event.addType({ end, after: this.#memberEnd }, end - start > maxTypeBytes ? '' : this.#text(start, end));
      this.#memberEnd = end;
    } else if (kind === 'string' && isUrnPath(path)) {
      if (end - start <= maxUrnBytes) this.#event.addUrn(path, this.#text(start, end));
    } else if (path.length === 4 && path[2] === 'summaryEvent' && path[3] === 'resourceChanges' && kind === 'object') {
      this.#resourceChanges = end - start > maxCountsBytes ? null : changeCounts(JSON.parse(this.#text(start, end)));
    }
  };

  end(): EventBatch {
    if (!this.#isBatch) throw new InvalidRequestError('"events" is not an array');
    return { events: this.#events, resourceChanges: this.#resourceChanges };
  }

  /** The own `type` only repeats the name of the payload. Readers put this name in front of the event. */
  #withoutType(start: number, end: number): string {
    const own = this.#event.redundantType();
    if (!own) return this.#text(start, end);
    if (own.after !== null) return this.#text(start, own.after) + this.#text(own.end, end);
    return `{${this.#text(own.end, end).replace(',', '')}`;
  }

  #text(start: number, end: number): string {
    return this.#body.toString('utf8', start, end);
  }
}

function isUnread(path: readonly (string | number)[]): boolean {
  return path.length === 1 ? path[0] !== 'events' : path.length === 4 && path[3] !== 'metadata';
}

function isUrnPath(path: readonly (string | number)[]): boolean {
  if (path.length === 4) return path[3] === 'urn' || path[3] === 'resourceUrn';
  return path[3] === 'metadata' && path[4] === 'urn';
}

/** `after` is the end of the preceding member. */
interface Place {
  readonly end: number;
  readonly after: number | null;
}

class EventReader {
  sequence: number | null = null;
  #timestamp = '0';
  /** The name of the first object, or of the first member if there is no object. */
  #type: string | null = null;
  #hasPayload = false;
  /** Undefined if it cannot be the name of the payload, or if there are several. */
  #ownType: { readonly place: Place; readonly value: unknown } | null = null;
  #urn: string | null = null;
  /** Of the current payload, in order of precedence: metadata.urn, urn, resourceUrn. */
  #urns: (string | null)[] = [null, null, null];

  /** `text` is the beginning of a number, and empty for other values. */
  addMember([, index, name]: readonly (string | number)[], kind: string, text: string): void {
    if (name === 'sequence') {
      this.sequence = kind === 'number' && /^\d{1,15}$/.test(text) ? Number(text) : null;
      if (this.sequence === null)
        throw new InvalidRequestError(`events[${index}].sequence is not a whole number from 0`);
    } else if (name === 'timestamp') {
      if (kind !== 'number') throw new InvalidRequestError(`events[${index}].timestamp is not a number`);
      // The CLI decodes an integer. With another value, it could read none of the events of the page.
      if (!/^-?\d{1,15}$/.test(text))
        throw new InvalidRequestError(`events[${index}].timestamp is not a whole number of seconds`);
      this.#timestamp = text;
    }
    const isPayload = kind === 'object' && !this.#hasPayload;
    if (!envelope.has(name) && (isPayload || this.#type === null)) {
      this.#type = String(name);
      this.#hasPayload = isPayload;
    }
    this.#urn ??= this.#urns.find((urn) => urn !== null) ?? null;
    this.#urns = [null, null, null];
  }

  addType(place: Place, json: string): void {
    const isFirst = this.#ownType === null;
    this.#ownType = { place, value: isFirst && /^(".*"|null)$/.test(json) ? JSON.parse(json) : undefined };
  }

  /** The own `type` is redundant if it is the name of the payload, or null, which stands for no type. */
  redundantType(): Place | null {
    const name = this.#payload();
    const own = this.#ownType;
    return own !== null && name !== '' && (own.value === null || own.value === name) ? own.place : null;
  }

  addUrn(path: readonly (string | number)[], json: string): void {
    const rank = path.length === 5 ? 0 : path[3] === 'urn' ? 1 : 2;
    this.#urns[rank] = validText(JSON.parse(json) as string);
  }

  asSent(text: string): EngineEventText {
    return { sequence: this.sequence as number, text, type: this.#typeText(), urn: this.#urn };
  }

  tooLarge(bytes: number, limit: number): EngineEventText {
    const what = this.#typeText() || 'event';
    const diagnostic = {
      ...(this.#urn === null ? {} : { urn: this.#urn }),
      message: `The ${what} with the sequence number ${this.sequence} was not stored: it has ${bytes} bytes, and the server stores at most ${limit} per event.\n`,
      color: 'never',
      severity: 'warning',
    };
    const text = `{"sequence":${this.sequence},"timestamp":${this.#timestamp},"diagnosticEvent":${JSON.stringify(diagnostic)}}`;
    return { sequence: this.sequence as number, text, type: 'diagnosticEvent', urn: this.#urn };
  }

  #typeText(): string {
    return this.#ownType !== null && !this.redundantType() ? '' : this.#payload();
  }

  #payload(): string {
    if (this.#type === null || Buffer.byteLength(this.#type) > maxTypeBytes) return '';
    return validText(this.#type) ?? '';
  }
}

/** Null if Postgres does not accept the text. */
function validText(text: string): string | null {
  return text.isWellFormed() && !text.includes('\0') ? text : null;
}
