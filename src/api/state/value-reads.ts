import { LRUCache } from 'lru-cache';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../platform/http/request.ts';

const minuteMs = 60_000;
/** Reads of outputs are recorded less often, because pages repeat them. */
const outputsMs = 60 * minuteMs;
const capacity = 10_000;

/** A read of a state's values, with redacted secrets. Several reads can be one event, so its details name no resource. */
interface ValueRead {
  readonly stackVersion: number | 'newest';
  readonly view: 'resource' | 'differences' | 'outputs';
  /** The other version, or the other stack. */
  readonly comparedWith?: number | string;
  /** When the stack was created: after its deletion, another stack may have its name. */
  readonly createdAt?: string;
}

/** The name of a stack in an organization's audit log, whose admins may not know of other organizations' stacks. */
export function nameIn(organization: string, ref: StackRef): string {
  return ref.organization === organization ? formatStackRef(ref) : 'a stack of another organization';
}

/**
 * Records that procedures show parts of states: at most once a minute for the same token, address, program, version and view, and once an
 * hour for outputs of the same stack.
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
