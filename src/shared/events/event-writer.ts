import { InvalidRequestError, PayloadTooLargeError } from '../platform/errors/errors.ts';
import { scanJson } from '../platform/json/json-text.ts';
import { type LeaseFence, LeaseLostError } from '../updates/lease.ts';
import type { EngineEventText, EventRepository } from './event-repository.ts';

/** The CLI sends at most 50 (pkg/backend/httpstate/client/client.go); a small body can hold millions. */
const maxEvents = 100_000;

/** A batch of engine events, cut apart: each event's own bytes, and the resource changes of a summary among them. */
export interface EventBatch {
  readonly events: readonly EngineEventText[];
  readonly resourceChanges: string | null;
}

/**
 * Cuts `{"events": [...]}` into its events. Only `sequence` and a summary's `resourceChanges` are read: payloads that we
 * do not know pass through. Throws InvalidRequestError, JsonSyntaxError.
 */
export function splitEventBatch(body: Buffer): EventBatch {
  let events: EngineEventText[] = [];
  let found: EngineEventText[] = [];
  let resourceChanges: string | null = null;
  let sequence: number | null = null;
  let isBatch = false;
  scanJson(body, 4, (path, { kind, start, end }) => {
    if (path[0] !== 'events') return;
    if (path.length === 1) {
      isBatch = kind === 'array';
      // Of a repeated member the last counts.
      events = found;
      found = [];
    } else if (path.length === 2) {
      if (kind !== 'object') throw new InvalidRequestError(`events[${path[1]}] is not an object`);
      if (sequence === null) throw new InvalidRequestError(`events[${path[1]}] has no sequence`);
      if (found.length === maxEvents) throw new PayloadTooLargeError(`A batch has at most ${maxEvents} events`);
      found.push({ sequence, text: body.toString('utf8', start, end) });
      sequence = null;
    } else if (path.length === 3 && path[2] === 'sequence') {
      const text = body.toString('latin1', start, Math.min(end, start + 32));
      sequence = kind === 'number' && /^\d{1,15}$/.test(text) ? Number(text) : null;
      if (sequence === null) throw new InvalidRequestError(`events[${path[1]}].sequence is not a whole number from 0`);
    } else if (path[2] === 'summaryEvent' && path[3] === 'resourceChanges' && kind === 'object') {
      resourceChanges = readCounts(body.toString('utf8', start, end));
    }
  });
  if (!isBatch) throw new InvalidRequestError('"events" is not an array');
  return { events, resourceChanges };
}

function readCounts(text: string): string {
  const counts = Object.entries(JSON.parse(text) as Record<string, unknown>).filter(([, count]) =>
    Number.isSafeInteger(count),
  );
  return JSON.stringify(Object.fromEntries(counts));
}

/** Records engine events. */
export class EventWriter {
  readonly #events: EventRepository;

  constructor(events: EventRepository) {
    this.#events = events;
  }

  /**
   * Resolves once all events of the batch (an inflated body) are committed; those that are there already are left.
   * Throws InvalidRequestError and LeaseLostError, which change nothing.
   */
  async append(fence: LeaseFence, body: Buffer): Promise<void> {
    const batch = splitEventBatch(body);
    if (!(await this.#events.append(fence, batch.events, batch.resourceChanges))) throw new LeaseLostError();
  }
}
