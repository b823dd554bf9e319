import { LRUCache } from 'lru-cache';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../platform/http/request.ts';

const minuteMs = 60_000;
/** Reads of outputs are recorded less often, because pages repeat them. */
const outputsMs = 60 * minuteMs;
const capacity = 10_000;

/** The values have redacted secrets. Several reads can be one event, so its details name no resource. */
interface ValueRead {
  readonly stackVersion: number | 'newest';
  readonly view: 'resource' | 'differences' | 'outputs';
  /** A version or a stack. */
  readonly comparedWith?: number | string;
  /** After the stack's deletion, another one may have its name. */
  readonly createdAt?: string;
}

/** Admins of one organization may not know of other organizations' stacks. */
export function nameIn(organization: string, ref: StackRef): string {
  return ref.organization === organization ? formatStackRef(ref) : 'a stack of another organization';
}

/**
 * Records a read at most once a minute for the same token, address, program, version and view, and once an hour for outputs of the same
 * stack.
 */
export class ValueReads {
  readonly #context: Pick<ApiContext, 'db' | 'readOnly'>;
  readonly #recent = new LRUCache<string, true>({ max: capacity, ttl: minuteMs });

  constructor(context: Pick<ApiContext, 'db' | 'readOnly'>) {
    this.#context = context;
  }

  /**
   * Call before the response. Throws UnavailableError if the event cannot be committed, and ReadOnlyError once another site has taken over.
   */
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
