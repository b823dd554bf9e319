import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../platform/db/sql.ts';
import { Nullable, Timestamp } from '../../platform/schema/standard-schema.ts';
import type { QuotaOverrides } from './quotas.ts';
import { countStacks, packVersionBytes } from './storage-repository.ts';

/** Advisory locks under which stacks and updates are counted, by organization. */
const countingLocks = { stacks: 91, updates: 92 };

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
  /** As of the last measurement; null if there was none. */
  keptBytes: Limit,
  measuredAt: Nullable(Timestamp),
});
export type UsageRow = Row<typeof UsageRow>;

const CountRow = Type.Object({ used: Type.Integer() });
const KeptRow = Type.Object({ used: Limit });

/** Each statement counts the active updates. */
export function createQuotaRepository(db: Queryable) {
  const columns = sql.fragment`
    q.stacks, q.kept_bytes as "keptBytes", q.in_flight_bytes as "inFlightBytes", q.updates,
    q.requests_per_second as "requestsPerSecond"`;
  const packBytes = sql.fragment`coalesce((
    select sum(${packVersionBytes})
    from policy_packs p join policy_pack_versions v on v.pack_id = p.id where p.organization_id = o.id), 0)::bigint`;
  const measured = sql.fragment`
    left join lateral (
      select m.state_bytes + m.journal_bytes + m.event_bytes + ${packBytes} as kept_bytes, m.measured_at from organization_storage m
      where m.organization_id = o.id order by m.day desc limit 1) w on true`;
  const stackCount = countStacks(sql.fragment`o.id`);
  // Deleted stacks have no active updates, because the deletion ends them.
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
     * Take this lock to count and add objects of the organization, such as webhooks, before any lock on a stack. It does not block foreign
     * key checks on the organization, which other transactions may make while they hold a stack.
     */
    lockOrganization: (organizationId: string) =>
      db.query(sql.nothing`
        /* quotas.lockOrganization */ select id from organizations where id = ${organizationId} for no key update`),

    /** One transaction at a time counts stacks, until its commit. Take this lock last, so that its holder waits for no other. */
    lockStackCount: (organizationId: string) =>
      db.query(sql.nothing`
        /* quotas.lockStackCount */ select pg_advisory_xact_lock(hashtextextended(${organizationId}, ${countingLocks.stacks}::bigint))`),

    /** One transaction at a time counts updates, until its commit. Take this lock before those of limits and stacks. */
    lockUpdateCount: (organizationId: string) =>
      db.query(sql.nothing`
        /* quotas.lockUpdateCount */ select pg_advisory_xact_lock(hashtextextended(${organizationId}, ${countingLocks.updates}::bigint))`),

    countStacks: async (organizationId: string): Promise<number> => {
      const row = await db.one(sql.rows(CountRow)`
        /* quotas.countStacks */ select ${stackCount} as used from organizations o where o.id = ${organizationId}`);
      return row.used;
    },

    /** Includes previews, and updates that are not started yet. */
    countUpdates: async (organizationId: string): Promise<number> => {
      const row = await db.one(sql.rows(CountRow)`
        /* quotas.countUpdates */ select ${updateCount} as used from organizations o where o.id = ${organizationId}`);
      return row.used;
    },

    /** As of the last measurement, but with the current bytes of policy packs; 0 if never measured. */
    findKeptBytes: async (organization: string): Promise<number> => {
      const row = await db.maybeOne(sql.rows(KeptRow)`
        /* quotas.findKeptBytes */
        select w.kept_bytes as used from organizations o ${measured} where o.name = ${organization}`);
      return row?.used ?? 0;
    },

    /** Organizations with their own limits come first, then the order is by name. */
    listUsage: (options: { onlyOwnLimits: boolean; limit: number | null }) =>
      db.any(sql.rows(UsageRow)`
        /* quotas.listUsage */
        select o.id as "organizationId", o.name as organization, ${stackCount} as stacks, ${updateCount} as updates,
               w.kept_bytes as "keptBytes", w.measured_at as "measuredAt"
        from organizations o ${measured}
        left join organization_quotas q on q.organization_id = o.id
        where not ${options.onlyOwnLimits} or q.organization_id is not null
        order by q.organization_id is null, o.name limit ${options.limit}`),

    findUsage: (organization: string) =>
      db.maybeOne(sql.rows(UsageRow)`
        /* quotas.findUsage */
        select o.id as "organizationId", o.name as organization, ${stackCount} as stacks, ${updateCount} as updates,
               w.kept_bytes as "keptBytes", w.measured_at as "measuredAt"
        from organizations o ${measured} where o.name = ${organization}`),
  };
}
