import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../platform/db/sql.ts';
import { Nullable, Timestamp } from '../../platform/schema/standard-schema.ts';
import { createKeptBytesRepository } from './kept-bytes-repository.ts';
import type { QuotaOverrides } from './quotas.ts';
import { countStacks, idleSeconds, isSettled } from './storage-repository.ts';

const Limit = Nullable(Type.Integer());
const OverridesRow = Type.Object({
  organization: Type.String(),
  stacks: Limit,
  keptBytes: Limit,
  inFlightBytes: Limit,
  updates: Limit,
  requestsPerSecond: Limit,
});

const UsageRow = Type.Object({
  organizationId: Type.String(),
  organization: Type.String(),
  stacks: Type.Integer(),
  updates: Type.Integer(),
  /** As of the last measurement; null if never measured. */
  keptBytes: Limit,
  measuredAt: Nullable(Timestamp),
});
export type UsageRow = Row<typeof UsageRow>;

const SettledRow = Type.Object({ id: Type.String(), organization: Type.String(), measured: Type.Number() });

const CountRow = Type.Object({ used: Type.Integer() });
const IdRow = Type.Object({ id: Type.String() });

/** Limits and usage of organizations. Active updates are counted by each statement. */
export function createQuotaRepository(db: Queryable) {
  const columns = sql.fragment`
    q.stacks, q.kept_bytes as "keptBytes", q.in_flight_bytes as "inFlightBytes", q.updates,
    q.requests_per_second as "requestsPerSecond"`;
  const stackCount = countStacks(sql.fragment`o.id`);
  // The deletion of a stack ends its updates.
  const updateCount = sql.fragment`(
    select count(*) from updates u where u.organization_id = o.id
      and u.status in ('not started', 'running') and u.expires_at > clock_timestamp())`;

  return {
    listOverrides: () =>
      db.any(sql.rows(OverridesRow)`
        /* quotas.listOverrides */
        select o.name as organization, ${columns} from organization_quotas q join organizations o on o.id = q.organization_id`),

    setOverrides: (organizationId: string, limits: QuotaOverrides) =>
      db.query(sql.nothing`
        /* quotas.setOverrides */
        insert into organization_quotas (organization_id, stacks, kept_bytes, in_flight_bytes, updates, requests_per_second)
        values (${organizationId}, ${limits.stacks}, ${limits.keptBytes}, ${limits.inFlightBytes}, ${limits.updates},
                ${limits.requestsPerSecond})
        on conflict (organization_id) do update set stacks = excluded.stacks, kept_bytes = excluded.kept_bytes,
          in_flight_bytes = excluded.in_flight_bytes, updates = excluded.updates,
          requests_per_second = excluded.requests_per_second`),

    deleteOverrides: (organizationId: string) =>
      db.query(sql.nothing`
        /* quotas.deleteOverrides */ delete from organization_quotas where organization_id = ${organizationId}`),

    /**
     * Allows one transaction at a time to count and add. Take it before any lock on a stack. Foreign key checks on the
     * organization, which others may make while they hold a stack, do not wait for it.
     */
    lockOrganization: (organizationId: string) =>
      db.query(sql.nothing`
        /* quotas.lockOrganization */ select id from organizations where id = ${organizationId} for no key update`),

    countStacks: async (organizationId: string): Promise<number> => {
      const row = await db.one(sql.rows(CountRow)`
        /* quotas.countStacks */ select ${stackCount} as used from organizations o where o.id = ${organizationId}`);
      return row.used;
    },

    /** Counts updates that are running or not started yet, including previews. */
    countUpdates: async (organizationId: string): Promise<number> => {
      const row = await db.one(sql.rows(CountRow)`
        /* quotas.countUpdates */ select ${updateCount} as used from organizations o where o.id = ${organizationId}`);
      return row.used;
    },

    /** Returns the bytes kept as of the last measurement; 0 if never measured. */
    findKeptBytes: async (organization: string): Promise<number> => {
      const row = await db.maybeOne(sql.rows(CountRow)`
        /* quotas.findKeptBytes */
        select w.kept_bytes as used from organization_usage w join organizations o on o.id = w.organization_id
        where o.name = ${organization}`);
      return row?.used ?? 0;
    },

    /** Returns the usage of all organizations, or only of organizations with their own limits: these first, then by name. */
    listUsage: (options: { onlyOwnLimits: boolean; limit: number | null }) =>
      db.any(sql.rows(UsageRow)`
        /* quotas.listUsage */
        select o.id as "organizationId", o.name as organization, ${stackCount} as stacks, ${updateCount} as updates,
               w.kept_bytes as "keptBytes", w.measured_at as "measuredAt"
        from organizations o left join organization_usage w on w.organization_id = o.id
        left join organization_quotas q on q.organization_id = o.id
        where not ${options.onlyOwnLimits} or q.organization_id is not null
        order by q.organization_id is null, o.name limit ${options.limit}`),

    /** The usage of one organization. */
    findUsage: (organization: string) =>
      db.maybeOne(sql.rows(UsageRow)`
        /* quotas.findUsage */
        select o.id as "organizationId", o.name as organization, ${stackCount} as stacks, ${updateCount} as updates,
               w.kept_bytes as "keptBytes", w.measured_at as "measuredAt"
        from organizations o left join organization_usage w on w.organization_id = o.id where o.name = ${organization}`),

    /**
     * Returns the organizations whose kept bytes are due for measurement: all, or only organizations with their own limit.
     * Excludes organizations whose last measurement took more than 1% of the time since then, and for an hour those that nothing has changed.
     */
    listMeasured: async (all: boolean): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* quotas.listMeasured */
        select o.id from organizations o
        left join organization_quotas q on q.organization_id = o.id
        left join organization_usage w on w.organization_id = o.id
        where coalesce(q.kept_bytes > 0, ${all})
          and (w.measured_at is null or w.measured_at + make_interval(secs => w.took_ms * 100 / 1000.0) <= now() and (
            w.measured_at <= clock_timestamp() - make_interval(secs => ${idleSeconds}::int)
            or not ${isSettled(sql.fragment`w.measured_at`)}
            or exists (select 1 from stack_storage k where k.organization_id = o.id and k.measured_at = '-infinity')
            or w.kept_bytes <> (
              select coalesce(sum(n.state_bytes + n.journal_bytes + n.event_bytes), 0) from stack_counts n
              where n.organization_id = o.id)))`);
      return rows.map(({ id }) => id);
    },

    /**
     * The last measurements of organizations with a limit of kept bytes, or of one, after which nothing has changed what they keep. `all`: there
     * is a limit for all organizations.
     */
    listSettled: (all: boolean, organizationId: string | null) =>
      db.any(sql.rows(SettledRow)`
        /* quotas.listSettled */
        select o.id, o.name as organization, w.kept_bytes::float8 as measured
        from organization_usage w join organizations o on o.id = w.organization_id
        left join organization_quotas q on q.organization_id = o.id
        where coalesce(q.kept_bytes > 0, ${all})
          and ${organizationId === null ? sql.fragment`true` : sql.fragment`o.id = ${organizationId}`}
          and ${isSettled(sql.fragment`w.measured_at`)}
        order by o.name`),

    /** Measures what the stacks of an organization keep; `isWhole`: reads all. Throws the reason of `signal`. */
    measure: async (organizationId: string, signal?: AbortSignal, isWhole = false): Promise<void> => {
      const last = isWhole
        ? sql.fragment`null::timestamptz`
        : sql.fragment`(select measured_at from organization_usage where organization_id = ${organizationId})`;
      const { at, kept, tookMs } = await createKeptBytesRepository(db).measure(organizationId, last, signal);
      await db.query(sql.nothing`
        /* quotas.measure */
        insert into organization_usage as w (organization_id, kept_bytes, measured_at, took_ms)
        select o.id, ${kept.states + kept.journals + kept.events}::bigint, ${at}::timestamptz, coalesce(${tookMs}::int, 0)
        from organizations o where o.id = ${organizationId}
        on conflict (organization_id) do update set kept_bytes = excluded.kept_bytes, measured_at = excluded.measured_at,
          took_ms = coalesce(${tookMs}::int, w.took_ms)`);
    },
  };
}
