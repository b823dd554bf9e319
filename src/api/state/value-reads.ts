import { LRUCache } from 'lru-cache';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../platform/http/request.ts';

const minuteMs = 60_000;
/** Pages that show outputs read them again and again. */
const outputsMs = 60 * minuteMs;
const capacity = 10_000;

/** A read of values of a state, with redacted secrets. Several are one event: its details name no resource. */
interface ValueRead {
  readonly stackVersion: number | 'newest';
  readonly view: 'resource' | 'differences' | 'outputs';
  /** The other version, or the other stack. */
  readonly comparedWith?: number | string;
  /** When the stack was created: after its deletion, another may have its name. */
  readonly createdAt?: string;
}

/** The name of a stack in the audit log of an organization, whose admins may not know of stacks of others. */
export function nameIn(organization: string, ref: StackRef): string {
  return ref.organization === organization ? formatStackRef(ref) : 'a stack of another organization';
}

/**
 * Records that procedures show parts of states: the same token, address, program, version and view once a minute, outputs of the same stack once
 * an hour.
 */
export class ValueReads {
  readonly #context: Pick<ApiContext, 'db' | 'readOnly'>;
  readonly #recent = new LRUCache<string, true>({ max: capacity, ttl: minuteMs });

  constructor(context: Pick<ApiContext, 'db' | 'readOnly'>) {
    this.#context = context;
  }

  /** Call before the response. Throws UnavailableError if the event cannot be committed, and ReadOnlyError once another site has taken over. */
  async record(
    audit: AuditTrail,
    { tokenId }: Caller,
    ref: StackRef,
    { createdAt, view, ...read }: ValueRead,
  ): Promise<void> {
    const { db, readOnly } = this.#context;
    readOnly.assertNotFenced();
    const object = formatStackRef(ref);
    const { address, userAgent } = audit.source;
    const { comparedWith, stackVersion } = read;
    const key = JSON.stringify([tokenId, address, userAgent, object, createdAt, view, stackVersion, comparedWith]);
    if (this.#recent.has(key)) return;
    const details = { ...read, ...(view === 'outputs' ? { outputsOnly: true } : { view }), secrets: 'redacted' };
    await audit.recordRead(db, { organization: ref.organization, object, details });
    this.#recent.set(key, true, view === 'outputs' ? { ttl: outputsMs } : {});
  }
}
