import type { WriteBody } from '../platform/payloads/body-buffer.ts';
import { LeaseFence } from '../updates/fence.ts';
import { LeaseLostError } from '../updates/lease-loss.ts';
import { splitEventBatch } from './event-batch.ts';
import type { EventRepository } from './event-repository.ts';

export const appendEvents = {
  name: 'append-events',
  schemas: [1],
  fields: { fence: LeaseFence },
  label: () => 'events',
  budget: 'writes',
  run: (
    { eventWriter }: { readonly eventWriter: EventWriter },
    { fence }: { readonly fence: LeaseFence },
    body: WriteBody,
  ) => body.use((events) => eventWriter.append(fence, events)),
} as const;

export class EventWriter {
  readonly #events: EventRepository;
  readonly #maxEventBytes: number;
  readonly #onAppended: (fence: LeaseFence) => void;

  /** `onAppended` is called after each committed batch. */
  constructor(events: EventRepository, maxEventBytes: number, onAppended: (fence: LeaseFence) => void) {
    this.#events = events;
    this.#maxEventBytes = maxEventBytes;
    this.#onAppended = onAppended;
  }

  /** `body` is inflated. Skips events that are already stored. Throws InvalidRequestError and LeaseLostError without a change. */
  async append(fence: LeaseFence, body: Buffer): Promise<void> {
    const { events, resourceChanges } = await splitEventBatch(body, this.#maxEventBytes);
    if (!(await this.#events.append(fence, events, resourceChanges))) throw new LeaseLostError();
    this.#onAppended(fence);
  }
}
