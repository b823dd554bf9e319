import { KeptUrns } from '../state/deployments/kept-urns.ts';
import { urnKey } from '../state/deployments/live-urns.ts';
import type { PreviewedChanges } from '../state/journal/change-limits/limited-append.ts';
import type { EventReader } from './event-reader.ts';
import { textOf } from './event-text.ts';

/** A step with a larger event counts as not announced by the preview. */
const maxEventBytes = 8 * 1024 * 1024;
const appetite = { events: 500, bytes: 4 * 1024 * 1024 };

/** Only events that match are parsed: most are about unchanged resources. */
const mayChange = /"op"\s*:\s*"[a-z-]*(?:delete|replace)/;
const isChange = /delete|replace/;

/** An ended preview never changes, so the results for the most recently requested previews are cached. */
export class EventsOfPreviews implements PreviewedChanges {
  readonly #events: EventReader;
  readonly #kept = new KeptUrns();

  constructor(parts: { events: EventReader }) {
    this.#events = parts.events;
  }

  /** Throws the errors of EventReader. */
  of(previewId: string): Promise<ReadonlySet<string>> {
    return this.#kept.of(previewId, () => this.#read(previewId));
  }

  async #read(previewId: string): Promise<ReadonlySet<string>> {
    const urns = new Set<string>();
    const selection = { beyond: -1, newestFirst: false, urn: null, types: ['resourcePreEvent'] };
    for await (const events of this.#events.read({ id: previewId, mayHaveRows: true }, selection, appetite)) {
      for (const event of events) {
        const urn = event.bytes <= maxEventBytes ? changedUrn(await textOf(event)) : null;
        if (urn !== null) urns.add(urnKey(urn));
      }
    }
    return urns;
  }
}

/** Null for events that delete or replace nothing. */
function changedUrn(text: string): string | null {
  if (!mayChange.test(text)) return null;
  const { resourcePreEvent: step } = JSON.parse(text) as {
    readonly resourcePreEvent?: { readonly metadata?: { readonly op?: unknown; readonly urn?: unknown } | null } | null;
  };
  const { op, urn } = step?.metadata ?? {};
  return typeof op === 'string' && isChange.test(op) && typeof urn === 'string' ? urn : null;
}
