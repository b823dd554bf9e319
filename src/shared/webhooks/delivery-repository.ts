import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { mayBeSent } from '../platform/outgoing/held-outgoing-repository.ts';
import { Bytes, Nullable, Timestamp } from '../platform/schema/standard-schema.ts';

/** Includes the data that the attempt needs. */
const ClaimedRow = Type.Object({
  id: Type.String(),
  webhookId: Type.String(),
  eventId: Type.String(),
  updateId: Nullable(Type.String()),
  event: Type.String(),
  occurredAt: Timestamp,
  /** Includes this attempt. */
  attempts: Type.Integer(),
  isManual: Type.Boolean(),
  isActive: Type.Boolean(),
  url: Type.String(),
  format: Type.String(),
  encrypted: Nullable(Bytes),
  masterKeyId: Nullable(Type.String()),
});
export type ClaimedDelivery = Row<typeof ClaimedRow>;

export const deliveryStates = ['waiting', 'delivered', 'failed', 'left-out'] as const;
export type DeliveryState = (typeof deliveryStates)[number];

const DeliveryRow = Type.Object({
  id: Type.String(),
  eventId: Type.String(),
  event: Type.String(),
  facts: Nullable(Type.String()),
  state: Type.Unsafe<DeliveryState>(Type.String()),
  /** Of the last attempt or, without one, of the event. */
  at: Timestamp,
  durationMs: Nullable(Type.Integer()),
  requestUrl: Nullable(Type.String()),
  requestHeaders: Nullable(Type.String()),
  responseStatus: Nullable(Type.Integer()),
  responseHeaders: Nullable(Type.String()),
  responseBody: Nullable(Type.String()),
});
export type DeliveryRow = Row<typeof DeliveryRow>;

/** Without the request and response. */
const LoggedRow = Type.Object({
  id: Type.String(),
  number: Type.Integer(),
  event: Type.String(),
  project: Nullable(Type.String()),
  stack: Nullable(Type.String()),
  state: Type.Unsafe<DeliveryState>(Type.String()),
  at: Timestamp,
  attempts: Type.Integer(),
  isManual: Type.Boolean(),
  durationMs: Nullable(Type.Integer()),
  responseStatus: Nullable(Type.Integer()),
});
export type LoggedDeliveryRow = Row<typeof LoggedRow>;

const IdRow = Type.Object({ id: Type.String() });
const CountRow = Type.Object({ count: Type.Integer() });
const WaitingRow = Type.Object({ count: Type.Integer(), seconds: Type.Number() });

/** `unsigned` deliveries need no master key, so any worker can attempt them. API replicas have the keys and attempt the `signed` ones. */
export type DeliveryShare = 'all' | 'signed' | 'unsigned';

export interface AttemptRecord {
  readonly state: DeliveryState;
  /** Until the next attempt. */
  readonly pauseSeconds: number;
  readonly durationMs: number | null;
  readonly requestUrl: string | null;
  readonly requestHeaders: string | null;
  readonly responseStatus: number | null;
  readonly responseHeaders: string | null;
  readonly responseBody: string | null;
}

/** Over all processes: a slow receiver must not delay the others. */
const attemptsPerWebhook = 4;
/** Serializes claims. An arbitrary number, the same in every release. */
const claimLock = 5_641_377;

/** When the first waiting delivery of each webhook is due. One index descent for each, so that no other deliveries are read. */
const busyWebhooks = sql.fragment`busy as (
  (select webhook_id, next_at from webhook_deliveries where state = 'waiting' order by webhook_id, next_at limit 1)
  union all
  select n.webhook_id, n.next_at from busy b cross join lateral (
    select d.webhook_id, d.next_at from webhook_deliveries d where d.state = 'waiting' and d.webhook_id > b.webhook_id
    order by d.webhook_id, d.next_at limit 1) n
)`;

/** All times are by the database's clock. */
export function createDeliveryRepository(db: Queryable) {
  const claimedColumns = sql.fragment`d.id, d.webhook_id as "webhookId", d.event_id as "eventId", e.update_id as "updateId", e.event,
    e.occurred_at as "occurredAt", d.attempts, d.is_manual as "isManual", w.is_active as "isActive", w.url, w.format,
    w.secret as encrypted, w.master_key_id as "masterKeyId"`;
  const columns = sql.fragment`d.id, d.event_id as "eventId", e.event, e.facts, d.state, coalesce(d.attempted_at, e.occurred_at) as at,
    d.duration_ms as "durationMs", d.request_url as "requestUrl", d.request_headers as "requestHeaders",
    d.response_status as "responseStatus", d.response_headers as "responseHeaders", d.response_body as "responseBody"`;
  return {
    /** Costs one small read. */
    isAnyDue: () =>
      db.exists(sql.rows(IdRow)`
        /* webhookDeliveries.isAnyDue */
        select id from webhook_deliveries where state = 'waiting' and next_at <= (select clock_timestamp())
          and (claimed_until is null or claimed_until <= (select clock_timestamp())) and ${mayBeSent} limit 1`),

    /**
     * Returns none while another process claims. Call it in a transaction of its own.
     * - Claims: no other process gets these deliveries meanwhile.
     * - Order: no process gets other deliveries about the same update to the same webhook meanwhile. Therefore, an update's end overtakes
     *   its start only while the start waits for a retry.
     * - Fairness: organizations take turns, and so do the webhooks of each. The one with the fewest claims comes first, so that slow
     *   receivers delay others by at most one attempt.
     */
    claim: async (options: { readonly limit: number; readonly seconds: number; readonly share: DeliveryShare }) => {
      const ofShare = {
        all: sql.fragment`true`,
        signed: sql.fragment`w.secret is not null`,
        unsigned: sql.fragment`w.secret is null`,
      }[options.share];
      // Waiting would occupy a connection per process.
      const isFree = await db.exists(sql.rows(Type.Object({}))`
        /* webhookDeliveries.lockClaims */ select 1 where pg_try_advisory_xact_lock(${claimLock})`);
      if (!isFree) return [];
      return db.any(sql.rows(ClaimedRow)`
        /* webhookDeliveries.claim */
        with recursive now as (select clock_timestamp() as at),
        ${busyWebhooks},
        claimed as materialized (
          select w.organization_id, o.webhook_id, count(*) as count
          from now cross join webhook_deliveries o join webhooks w on w.id = o.webhook_id
          where o.claimed_until > now.at group by 1, 2
        ),
        due as (
          select w.organization_id, d.id, d.next_at, coalesce(c.count, 0) + row_number() over (partition by w.id order by d.next_at) as turn
          from now cross join busy b join webhooks w on w.id = b.webhook_id left join claimed c on c.webhook_id = w.id
            cross join lateral (
              select id, next_at from (
                select distinct on (coalesce(due.update_id, due.id)) due.id, due.next_at, due.number from (
                  select d.id, d.next_at, d.number, e.update_id from webhook_deliveries d join webhook_events e on e.id = d.event_id
                  where d.webhook_id = w.id and d.state = 'waiting' and d.next_at <= now.at
                    and (d.claimed_until is null or d.claimed_until <= now.at)
                    and not exists (
                      select 1 from webhook_deliveries o join webhook_events t on t.id = o.event_id
                      where o.webhook_id = w.id and o.claimed_until > now.at and t.update_id = e.update_id)
                  order by d.next_at limit ${attemptsPerWebhook * 4}
                ) due
                order by coalesce(due.update_id, due.id), due.number
              ) of_update
              order by next_at, number limit greatest(0, ${attemptsPerWebhook} - coalesce(c.count, 0))
            ) d
          where b.next_at <= now.at and ${ofShare} and ${mayBeSent}
        ),
        chosen as (
          select d.id from (
            select id, next_at, organization_id, row_number() over (partition by organization_id order by turn, next_at) as turn from due
          ) d left join (select organization_id, sum(count) as count from claimed group by 1) c using (organization_id)
          order by coalesce(c.count, 0) + d.turn, d.next_at limit ${options.limit}
        )
        update webhook_deliveries d set claimed_until = clock_timestamp() + make_interval(secs => ${options.seconds}),
          attempts = d.attempts + 1, attempted_at = clock_timestamp()
        from chosen, webhooks w, webhook_events e
        where d.id = chosen.id and d.state = 'waiting' and w.id = d.webhook_id and e.id = d.event_id
        returning ${claimedColumns}`);
    },

    /** Of a new or an earlier event. This process attempts it at once. */
    addClaimed: (webhookId: string, eventId: string, seconds: number) =>
      db.one(sql.rows(ClaimedRow)`
        /* webhookDeliveries.addClaimed */
        with added as (
          insert into webhook_deliveries (webhook_id, event_id, is_manual, attempts, attempted_at, claimed_until)
          values (${webhookId}, ${eventId}, true, 1, clock_timestamp(), clock_timestamp() + make_interval(secs => ${seconds}))
          returning *
        )
        select ${claimedColumns} from added d join webhooks w on w.id = d.webhook_id join webhook_events e on e.id = d.event_id`),

    /** Does nothing if another attempt has begun since. */
    note: (id: string, attempt: number, outcome: AttemptRecord) =>
      db.query(sql.nothing`
        /* webhookDeliveries.note */
        update webhook_deliveries set state = ${outcome.state}, claimed_until = null,
          next_at = clock_timestamp() + make_interval(secs => ${outcome.pauseSeconds}), duration_ms = ${outcome.durationMs},
          request_url = ${outcome.requestUrl}, request_headers = ${outcome.requestHeaders},
          response_status = ${outcome.responseStatus}, response_headers = ${outcome.responseHeaders},
          response_body = ${outcome.responseBody}
        where id = ${id} and attempts = ${attempt} and state = 'waiting'`),

    /** For a claimed attempt that was not made. */
    release: (id: string, attempt: number) =>
      db.query(sql.nothing`
        /* webhookDeliveries.release */
        update webhook_deliveries set claimed_until = null, attempts = attempts - 1
        where id = ${id} and attempts = ${attempt} and state = 'waiting'`),

    /** Newest first. */
    list: (webhookId: string, limit: number) =>
      db.any(sql.rows(DeliveryRow)`
        /* webhookDeliveries.list */
        select ${columns} from webhook_deliveries d join webhook_events e on e.id = d.event_id
        where d.webhook_id = ${webhookId} order by d.number desc limit ${limit}`),

    /** Newest first. */
    listPage: (webhookId: string, before: number | null, limit: number) =>
      db.any(sql.rows(LoggedRow)`
        /* webhookDeliveries.listPage */
        select d.id, d.number, e.event, e.project, e.stack, d.state, coalesce(d.attempted_at, e.occurred_at) as at, d.attempts,
          d.is_manual as "isManual", d.duration_ms as "durationMs", d.response_status as "responseStatus"
        from webhook_deliveries d join webhook_events e on e.id = d.event_id
        where d.webhook_id = ${webhookId} and (${before}::bigint is null or d.number < ${before}::bigint)
        order by d.number desc limit ${limit}`),

    find: (webhookId: string, id: string) =>
      db.maybeOne(sql.rows(DeliveryRow)`
        /* webhookDeliveries.find */
        select ${columns} from webhook_deliveries d join webhook_events e on e.id = d.event_id
        where d.id = ${id} and d.webhook_id = ${webhookId}`),

    get: (id: string) =>
      db.one(sql.rows(DeliveryRow)`
        /* webhookDeliveries.get */
        select ${columns} from webhook_deliveries d join webhook_events e on e.id = d.event_id where d.id = ${id}`),

    /** `id` is that of the delivery or the event. */
    findEvent: async (webhookId: string, id: string): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* webhookDeliveries.findEvent */
        select event_id as id from webhook_deliveries
        where webhook_id = ${webhookId} and (id = ${id}::uuid or event_id = ${id}::uuid) limit 1`);
      return row?.id ?? null;
    },

    /**
     * Deletes events older than `days`, with their deliveries, unless one still waits or was attempted within that time. Returns the number
     * of events.
     */
    deleteOld: async (days: number, limit: number): Promise<number> => {
      const row = await db.one(sql.rows(CountRow)`
        /* webhookDeliveries.deleteOld */
        with old as (
          select e.id from webhook_events e
          where e.occurred_at < now() - make_interval(days => ${days}) and not exists (
            select 1 from webhook_deliveries d join webhooks w on w.id = d.webhook_id
            where d.event_id = e.id and (d.state = 'waiting' or d.attempted_at >= now() - make_interval(days => ${days}))
            -- Looked up for each event: with outdated statistics, a join would read all deliveries for each.
            offset 0)
          order by e.occurred_at limit ${limit}
        ), deleted as (delete from webhook_events where id = any (array(select id from old)) returning 1)
        select count(*)::integer as count from deleted`);
      return row.count;
    },

    /** Orphans wait for removed webhooks: they were added during the removal, or left by one with a long log. */
    deleteOrphans: async (limit: number): Promise<number> => {
      const row = await db.one(sql.rows(CountRow)`
        /* webhookDeliveries.deleteOrphans */
        with deleted as (
          delete from webhook_deliveries where ctid = any (array(
            select d.ctid from webhook_deliveries d
            where d.state = 'waiting' and d.next_at < now() - interval '1 minute'
              and not exists (select 1 from webhooks w where w.id = d.webhook_id) limit ${limit}))
          returning 1
        )
        select count(*)::integer as count from deleted`);
      return row.count;
    },

    /**
     * Counts up to 10,000. The delay is the longest of a delivery that a process could attempt. Deliveries that wait behind the limit of
     * their own webhook, because of a slow receiver, are no sign of a standstill.
     */
    countDue: () =>
      db.one(sql.rows(WaitingRow)`
        /* webhookDeliveries.countDue */
        with recursive ${busyWebhooks},
        full_webhooks as materialized (
          select webhook_id from webhook_deliveries where claimed_until > clock_timestamp()
          group by webhook_id having count(*) >= ${attemptsPerWebhook}
        )
        select (select count(*)::integer from (
            select 1 from webhook_deliveries where state = 'waiting' and next_at <= clock_timestamp() limit 10000) due) as count,
          coalesce(extract(epoch from clock_timestamp() - min(o.next_at)), 0)::float8 as seconds
        from busy b join webhooks w on w.id = b.webhook_id cross join lateral (
          select d.next_at from webhook_deliveries d
          where d.webhook_id = b.webhook_id and d.state = 'waiting' and d.next_at <= clock_timestamp()
            and (d.claimed_until is null or d.claimed_until <= clock_timestamp())
          order by d.next_at limit 1) o
        where b.next_at <= clock_timestamp() and b.webhook_id not in (select webhook_id from full_webhooks)`),
  };
}
