import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Nullable, Timestamp } from '../platform/schema/standard-schema.ts';

const CountRow = Type.Object({ count: Type.Integer() });
const FactsRow = Type.Object({ facts: Type.String() });
const IdRow = Type.Object({ id: Type.String() });
const StatusRow = Type.Object({ status: Type.String() });

const EnvironmentRow = Type.Object({ environment: Type.String() });

const SourceRow = Type.Object({
  facts: Nullable(Type.String()),
  event: Type.String(),
  occurredAt: Timestamp,
  details: Type.String(),
  organization: Type.String(),
  project: Nullable(Type.String()),
  stack: Nullable(Type.String()),
  updateId: Nullable(Type.String()),
  /** Null without an update, or if the update is gone. */
  kind: Nullable(Type.String()),
  dryRun: Nullable(Type.Boolean()),
  status: Nullable(Type.String()),
  endReason: Nullable(Type.String()),
  stackVersion: Nullable(Type.Integer()),
  message: Nullable(Type.String()),
  resourceChanges: Nullable(Type.String()),
  environment: Nullable(Type.String()),
  startedAt: Nullable(Timestamp),
  endedAt: Nullable(Timestamp),
  login: Nullable(Type.String()),
});
export type EventSource = Row<typeof SourceRow>;

/** Larger environments are not read. */
const maxEnvironmentBytes = 1024 * 1024;

/** Triggers record the events of updates and stacks. */
export function createWebhookEventRepository(db: Queryable) {
  return {
    /** See `recordWebhookEvent`. */
    notify: (notified: {
      readonly organizationId: string;
      readonly stackId: string | null;
      readonly updateId: string | null;
      readonly event: string;
      readonly group: string;
      readonly details: string;
    }) =>
      db.query(sql.nothing`
        /* webhookEvents.notify */
        select notify_webhooks(${notified.organizationId}::uuid, ${notified.stackId}::uuid, ${notified.updateId}::uuid, ${notified.event}::text,
          ${notified.group}::text, ${notified.details}::text)`),

    /** For one webhook only. */
    insert: async (notified: {
      readonly organizationId: string;
      readonly stackId: string | null;
      readonly event: string;
    }): Promise<string> => {
      const row = await db.one(sql.rows(IdRow)`
        /* webhookEvents.insert */
        insert into webhook_events (organization_id, organization, project, stack, stack_id, event)
        select o.id, o.name, p.name, s.name, s.id, ${notified.event}
        from organizations o left join stacks s on s.id = ${notified.stackId}::uuid left join projects p on p.id = s.project_id
        where o.id = ${notified.organizationId} returning id`);
      return row.id;
    },

    /** Also deletes their deliveries. Returns the number of events. */
    deleteOfOrganization: async (organizationId: string, limit: number): Promise<number> => {
      const row = await db.one(sql.rows(CountRow)`
        /* webhookEvents.deleteOfOrganization */
        with deleted as (
          delete from webhook_events where id = any (array(
            select id from webhook_events where organization_id = ${organizationId} limit ${limit}))
          returning 1
        )
        select count(*)::integer as count from deleted`);
      return row.count;
    },

    /**
     * Ends waits that are too long because the clock was set back: events in the future, retries beyond `pauseSeconds`, and claims beyond
     * `claimSeconds`. Clips at most about `limit` rows.
     */
    clipWaits: async ({
      claimSeconds,
      limit,
      pauseSeconds,
    }: {
      readonly claimSeconds: number;
      readonly limit: number;
      readonly pauseSeconds: number;
    }): Promise<number> => {
      const row = await db.one(sql.rows(CountRow)`
        /* webhookEvents.clipWaits */
        with clipped as (
          update webhook_deliveries set next_at = least(next_at, now()),
            claimed_until = case when claimed_until is not null then least(claimed_until, now() + make_interval(secs => ${claimSeconds})) end
          where id = any (array(
            (select d.id from webhook_events e join webhook_deliveries d on d.event_id = e.id
              where e.occurred_at > now() + interval '1 second' and d.state = 'waiting' and d.next_at > now() + interval '1 second' limit ${limit})
            union all (select id from webhook_deliveries
              where state = 'waiting' and next_at > now() + make_interval(secs => ${pauseSeconds + 1}) limit ${limit})
            union all (select id from webhook_deliveries where claimed_until > now() + make_interval(secs => ${claimSeconds + 1}) limit ${limit})))
          returning 1
        )
        select count(*)::integer as count from clipped`);
      return row.count;
    },

    readSource: (id: string) =>
      db.one(sql.rows(SourceRow)`
        /* webhookEvents.readSource */
        select e.facts, e.event, e.occurred_at as "occurredAt", e.details, e.organization, e.project, e.stack,
          e.update_id as "updateId", u.kind, u.dry_run as "dryRun", u.status, u.end_reason as "endReason",
          u.stack_version as "stackVersion", left(u.message, 1000) as message,
          case when octet_length(u.resource_changes) <= 65536 then u.resource_changes end as "resourceChanges",
          case when octet_length(u.environment) <= ${maxEnvironmentBytes} then u.environment end as environment,
          u.started_at as "startedAt", u.ended_at as "endedAt", a.login
        from webhook_events e left join updates u on u.id = e.update_id left join users a on a.id = u.requested_by
        where e.id = ${id}`),

    /** Facts that another process has stored stay. Returns the stored facts. */
    keepFacts: async (id: string, facts: string): Promise<string> => {
      const row = await db.one(sql.rows(FactsRow)`
        /* webhookEvents.keepFacts */
        update webhook_events set facts = coalesce(facts, ${facts}) where id = ${id} returning facts`);
      return row.facts;
    },

    findUpdateStatus: async (updateId: string): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(StatusRow)`
        /* webhookEvents.findUpdateStatus */ select status from updates where id = ${updateId}`);
      return row?.status ?? null;
    },

    /**
     * Lists environments that contain the text, in lower case, of updates of the same stack that were created later and have begun. They
     * are previews if and only if this update is one.
     */
    listLaterEnvironments: async (updateId: string, text: string): Promise<string[]> => {
      const rows = await db.any(sql.rows(EnvironmentRow)`
        /* webhookEvents.listLaterEnvironments */
        select later.environment from updates u join updates later on later.stack_id = u.stack_id and later.number > u.number
        where u.id = ${updateId} and later.started_at is not null
          and (later.dry_run or later.kind = 'preview') = (u.dry_run or u.kind = 'preview')
          and octet_length(later.environment) <= ${maxEnvironmentBytes} and strpos(lower(later.environment), ${text}) > 0
        order by later.number desc limit 20`);
      return rows.map(({ environment }) => environment);
    },
  };
}
