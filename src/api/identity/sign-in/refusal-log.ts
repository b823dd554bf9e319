import { LRUCache } from 'lru-cache';
import { createAuditRepository } from '../../../shared/audit/audit-repository.ts';
import type { Database } from '../../../shared/platform/db/database.ts';
import type { Logger } from '../../../shared/platform/logger/logger.ts';
import type { AuditTrail } from '../../platform/audit-trail/audit-trail.ts';
import { addressGroup } from '../../platform/server/client-address.ts';

/** A repeated refusal is recorded once in this time. */
const refusalMs = 10_000;
const remembered = 10_000;
const maxChars = 300;

export interface RefusedSignIn {
  readonly method: 'link' | 'passkey' | 'provider';
  /** The user of the attempt; null: unknown. */
  readonly login: string | null;
  readonly details?: Readonly<Record<string, string>>;
}

/** Records refused sign-ins, except those with passwords, which have their own limits. */
export class RefusalLog {
  readonly #db: Database;
  readonly #logger: Logger;
  readonly #noted = new LRUCache<string, true>({ max: remembered, ttl: refusalMs });

  constructor({ db, logger }: { readonly db: Database; readonly logger: Logger }) {
    this.#db = db;
    this.#logger = logger;
  }

  async note({ details = {}, login, method }: RefusedSignIn, { source }: AuditTrail): Promise<void> {
    const shown = Object.entries(details).map(
      ([name, text]) => [name, text.slice(0, maxChars).toWellFormed()] as const,
    );
    const key = JSON.stringify([method, login, shown, source.address === null ? null : addressGroup(source.address)]);
    if (this.#noted.has(key)) return;
    this.#noted.set(key, true);
    const event = {
      action: 'session.begin',
      outcome: 'refused',
      organization: null,
      object: login ?? 'unknown',
    } as const;
    await createAuditRepository(this.#db)
      .insert(source, { ...event, details: { method, ...Object.fromEntries(shown) } })
      .catch((error: unknown) => this.#logger.error({ err: error }, 'a refused sign-in could not be recorded'));
  }
}
