import type { AuditEvent, AuditSource } from '../../shared/audit/audit-event.ts';
import { type AuditFormat, eventLine, headerLine } from '../../shared/audit/audit-formats.ts';
import {
  type AuditPosition,
  createAuditListRepository,
  type ListedEventRow,
} from '../../shared/audit/audit-list-repository.ts';
import { createAuditRepository, serverId } from '../../shared/audit/audit-repository.ts';
import type { IdentityRepository } from '../../shared/identity/identity-repository.ts';
import { holdfastVersion } from '../../shared/platform/config/config.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import { InvalidRequestError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import type { ReadOnlyMode } from '../../shared/platform/read-only/read-only-mode.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import { parseContinuation } from '../platform/http/continuation.ts';
import { type AuditSearch, createAuditSearchRepository, isScan } from './audit-search-repository.ts';

export type { AuditPosition, ListedEventRow };

const pageSize = 100;
const exportedAtOnce = 500;
/** The dashboard assembles an export from parts of this size. */
const exportedPart = 2_000;
/** Events that are scanned for fields without an index. */
const readAtOnce = 5_000;

export interface ListBounds {
  /** The time for filling a page from further scans. */
  readonly fillMs: number;
}

export const defaultListBounds: ListBounds = { fillMs: 10_000 };

export interface AuditQuery {
  readonly eventType?: string;
  readonly user?: string;
  readonly from?: string;
  readonly until?: string;
  readonly continuationToken?: string;
}

/** Missing filters match everything. */
export interface AuditFilter {
  readonly action?: string;
  /** A login, or `operator:` and a system user, or `server:`. */
  readonly user?: string;
  /** Part of the object, in any case. */
  readonly object?: string;
  readonly outcome?: 'done' | 'refused';
  readonly from?: string;
  readonly until?: string;
  readonly after: AuditPosition | null;
}

interface AuditPage {
  readonly events: readonly ListedEventRow[];
  readonly next: AuditPosition | null;
}

export class AuditService {
  readonly #db: Database;
  readonly #identity: IdentityRepository;
  readonly #readOnly: ReadOnlyMode;
  readonly #bounds: ListBounds;

  constructor(
    { db, identity, readOnly }: { db: Database; identity: IdentityRepository; readOnly: ReadOnlyMode },
    bounds: ListBounds = defaultListBounds,
  ) {
    this.#db = db;
    this.#identity = identity;
    this.#readOnly = readOnly;
    this.#bounds = bounds;
  }

  /** Does nothing once another site has taken over: the log is continued there. */
  async recordRefusal(source: AuditSource, event: AuditEvent): Promise<void> {
    if (this.#readOnly.isFenced) return;
    await createAuditRepository(this.#db).insert(source, { ...event, outcome: 'refused' });
  }

  /**
   * The newest events come first. Only the last page has fewer than `pageSize` events, because the CLI may read a single page. If filling a
   * page takes too long, `cutAt` is the time up to which the log was searched. Throws InvalidRequestError.
   */
  async listPage(
    organization: string,
    query: AuditQuery,
    gone: AbortSignal | null = null,
  ): Promise<{
    readonly events: readonly ListedEventRow[];
    readonly next: string | null;
    readonly cutAt: Date | null;
  }> {
    const selection = selectionOf(query);
    const id = await this.#getId(organization);
    const until = performance.now() + this.#bounds.fillMs;
    const events: ListedEventRow[] = [];
    for (let { after } = selection; ; ) {
      const page = await this.#read(id, { ...selection, after }, pageSize - events.length);
      events.push(...page.events);
      after = page.next;
      if (after === null || events.length === pageSize) return { events, next: after && tokenOf(after), cutAt: null };
      if (performance.now() < until && !gone?.aborted) continue;
      return { events, next: tokenOf(after), cutAt: new Date(Math.ceil(after.micros / 1_000)) };
    }
  }

  /**
   * The newest events come first. `next`: the position to continue after, even if the page has no event; null at the end. `organization`
   * null: the server. Throws InvalidRequestError.
   */
  async find(organization: string | null, query: AuditFilter, limit: number): Promise<AuditPage> {
    const search = searchOf(query);
    return this.#read(await this.#getId(organization), search, limit);
  }

  /** Like `find`, as lines of a format, once the export is recorded, with the position of the next part. */
  async exportPage(
    organization: string,
    { after, ...query }: AuditFilter,
    format: AuditFormat,
    audit: AuditTrail,
  ): Promise<{ readonly text: string; readonly next: AuditPosition | null }> {
    const { events, next } = await this.find(organization, { ...query, after }, exportedPart);
    const details = { format, ...query, ...(after === null ? {} : { continued: true }) };
    await audit.recordRead(this.#db, { organization, object: organization, details });
    const lines = events.map((event) => eventLine(format, event, holdfastVersion));
    return { text: [after === null ? headerLine(format) : '', ...lines].join(''), next };
  }

  /** The newest events come first. Begins once the export is recorded. Throws InvalidRequestError. */
  async exportLines(
    organization: string,
    query: AuditQuery,
    format: AuditFormat,
    audit: AuditTrail,
  ): Promise<AsyncGenerator<string>> {
    const selection = selectionOf(query);
    const id = await this.#getId(organization);
    const { eventType, from, until, user } = query;
    const details = { format, eventType, user, from, until };
    await audit.recordRead(this.#db, { organization, object: organization, details });
    return this.#lines(id, selection, format);
  }

  async *#lines(organizationId: string, selection: AuditSearch, format: AuditFormat): AsyncGenerator<string> {
    yield headerLine(format);
    for (let { after } = selection; ; ) {
      const { events, next } = await this.#read(organizationId, { ...selection, after }, exportedAtOnce);
      for (const event of events) yield eventLine(format, event, holdfastVersion);
      if (next === null) return;
      after = next;
    }
  }

  async #read(organizationId: string, selection: AuditSearch, limit: number): Promise<AuditPage> {
    const isWhole = !isScan(selection);
    const rows = isWhole
      ? (await createAuditListRepository(this.#db).list(organizationId, selection, limit + 1)).map(asFound)
      : await createAuditSearchRepository(this.#db).find(organizationId, selection, {
          limit: limit + 1,
          maxRead: readAtOnce,
        });
    const found = rows.filter(({ isFound }) => isFound);
    const events = found.slice(0, limit);
    const next = found.length > limit ? events.at(-1) : rows.find(({ isLast }) => isLast);
    return { events, next: next ?? null };
  }

  async #getId(organization: string | null): Promise<string> {
    if (organization === null) return serverId;
    const found = await this.#identity.findOrganization(organization);
    if (!found) throw new NotFoundError(`Organization '${organization}' not found`);
    return found.id;
  }
}

const asFound = (event: ListedEventRow) => ({ ...event, isFound: true, isLast: false });

const operatorPrefix = 'operator:';
const serverName = 'server:';

function selectionOf({ continuationToken, eventType, from, until, user }: AuditQuery): AuditSearch {
  for (const text of [eventType, user]) {
    if (text !== undefined && (text.length > 300 || text.includes('\0') || !text.isWellFormed()))
      throw new InvalidRequestError('eventType and user must be names');
  }
  const isOperator = user?.startsWith(operatorPrefix) ?? false;
  return {
    action: eventType || null,
    login: user ? (isOperator ? user.slice(operatorPrefix.length) : user) : null,
    actor: user ? (isOperator ? 'operator' : 'user') : null,
    from: from ? timeOf(from, 0) : null,
    until: until ? timeOf(until, 999) : null,
    after: continuationToken ? parseContinuation(continuationToken, readPosition) : null,
    object: null,
    outcome: null,
  };
}

function searchOf({ after, from, object, outcome, until, ...query }: AuditFilter): AuditSearch {
  const { actor, login, ...selection } = selectionOf({
    ...(query.action ? { eventType: query.action } : {}),
    ...(query.user ? { user: query.user } : {}),
    ...(from ? { from } : {}),
    ...(until ? { until } : {}),
  });
  return {
    ...selection,
    ...(query.user === serverName ? { actor: 'server', login: null } : { actor, login }),
    object: object || null,
    outcome: outcome ?? null,
    after,
  };
}

/** The year 10000, in ms. */
const maxTimeMs = 253_402_300_800_000;
const isoTime = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/;

/** `millisecond`: the milliseconds of a time given in seconds. */
function timeOf(text: string, millisecond: number): Date {
  if (/^\d{1,11}$/.test(text)) return new Date(Number(text) * 1000 + millisecond);
  const time = isoTime.test(text) ? new Date(text) : new Date(Number.NaN);
  // Postgres cannot read years outside this range.
  if (!(time.getTime() >= 0 && time.getTime() < maxTimeMs))
    throw new InvalidRequestError('A time must be in seconds since the epoch, or like 2026-01-31T12:00:00Z');
  return time;
}

function tokenOf({ micros, number }: AuditPosition): string {
  return `${micros}-${number}`;
}

function readPosition(token: string): AuditPosition | null {
  const [, micros, number] = /^(\d{1,16})-(\d{1,15})$/.exec(token) ?? [];
  if (micros === undefined || number === undefined || !Number.isSafeInteger(Number(micros))) return null;
  return { micros: Number(micros), number: Number(number) };
}
