import { LRUCache } from 'lru-cache';
import type { AuditEvent, AuditSource } from '../../../shared/audit/audit-event.ts';
import type { Caller } from '../http/request.ts';

/** A repeated refusal is recorded once in this time, in ms: repeated calls must not fill the log. */
const refusalMs = 10_000;
const refusalCapacity = 10_000;

export interface RefusalRecorder {
  recordRefusal(source: AuditSource, event: AuditEvent): Promise<void>;
}

/** Records refused calls of members only. */
export class Refusals {
  readonly #audit: RefusalRecorder;
  readonly #recent = new LRUCache<string, true>({ max: refusalCapacity, ttl: refusalMs });

  constructor({ audit }: { readonly audit: RefusalRecorder }) {
    this.#audit = audit;
  }

  /** Never fails: the call was refused anyway. */
  async record(
    source: AuditSource,
    { tokenId }: Caller,
    event: AuditEvent,
    log: { error(details: object, message: string): void },
  ): Promise<void> {
    const key = JSON.stringify([tokenId, event.action, event.object]);
    if (this.#recent.has(key)) return;
    this.#recent.set(key, true);
    await this.#audit
      .recordRefusal(source, event)
      .catch((failure: unknown) => log.error({ err: failure }, 'a refused call could not be recorded'));
  }
}
