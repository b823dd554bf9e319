import { Type } from 'typebox';
import { type Queryable, type SqlFragment, sql } from '../platform/db/sql.ts';
import type { AuditAction } from './audit-actions.ts';
import { type AuditEvent, type AuditSource, detailsJson } from './audit-event.ts';

/** Stands for the whole server in columns that name an organization. */
export const serverId = '00000000-0000-0000-0000-000000000000';

const UpdateIdRow = Type.Object({ updateId: Type.String() });
const maxNames = 100;

const columns = sql.fragment`
  organization_id, organization, action, outcome, actor, user_id, login, token_id, token_name, sign_in, role, granted_by,
  address, user_agent, ci_run, object, update_id, request_id, details`;

/** The parts that differ between events. */
export interface EventValues {
  readonly action: AuditAction;
  readonly organization: SqlFragment;
  readonly object: SqlFragment;
  readonly outcome: NonNullable<AuditEvent['outcome']>;
  readonly updateId: SqlFragment;
  readonly details: SqlFragment;
  /** For an update that the same statement inserts: it is not in its table yet. */
  readonly ciRun?: SqlFragment;
}

/**
 * Text of a JSON object without spaces, like JSON.stringify: exports show details as they are stored. Omits `optional` keys that are null.
 */
export function objectText(object: SqlFragment, optional: readonly string[] = []): SqlFragment {
  const isShown =
    optional.length === 0
      ? sql.fragment`true`
      : sql.fragment`not (m.name = any (${sql.array([...optional], 'text')}) and m.value::text = 'null')`;
  return sql.fragment`(
    select '{' || string_agg(to_json(m.name)::text || ':' || m.value::text, ',' order by m.position) || '}'
    from json_each(${object}) with ordinality as m (name, value, position) where ${isShown})`;
}

/**
 * Adds an event for the row of `from`. With a lease, user and token are taken from the update, and the role is the current one of the user
 * or token. A token without a user is named as in its own calls. The CI run is the update's.
 */
export function auditInsertion(source: AuditSource, event: EventValues, from: SqlFragment): SqlFragment {
  const { action, details, object, organization, outcome, updateId } = event;
  const isLease = source.signIn === 'lease';
  const { ciRun = sql.fragment`u.ci_run` } = event;
  const id = event.ciRun ? updateId : sql.fragment`u.id`;
  return sql.fragment`
        insert into audit_events (${columns})
        select coalesce(o.id, ${serverId}::uuid), coalesce(${organization}, ''), ${action}, ${outcome}, ${source.actor},
          a.id, coalesce(a.login, ${source.login}::text,
            case t.kind when 'personal' then null when 'team' then 'team:' || e.name || '/' || t.name else t.kind || ':' || t.name end, ''),
          t.id, coalesce(nullif(t.name, ''), t.description, ${source.tokenName}::text, ''),
          ${source.signIn}, coalesce(${source.role}::text, m.role, case when ${isLease} then t.role end, ''),
          coalesce(${source.grantedBy}::text, case when ${isLease} and t.policy_id is not null then 'policy:' || t.policy_id
            when not ${isLease} or t.kind = 'personal' then null
            when t.kind = 'team' then 'team:' || e.name else 'token' end, ''),
          coalesce(${source.address}::text, ''), coalesce(${source.userAgent}::text, ''), coalesce(${ciRun}, ''), ${object},
          ${id}, coalesce(${source.requestId}::text, ''), ${details}
        from ${from}
        left join organizations o on o.name = ${organization}
        left join updates u on u.id = ${updateId}
        left join users a on a.id = coalesce(${source.userId}::uuid, case when ${isLease} then u.requested_by end)
        left join api_tokens t on t.id = coalesce(${source.tokenId}::uuid, case when ${isLease} then u.token_id end)
        left join teams e on e.id = t.team_id
        left join memberships m on ${isLease} and m.organization_id = o.id and m.user_id = a.id`;
}

export function createAuditRepository(db: Queryable) {
  return {
    insert: (source: AuditSource, event: AuditEvent) => {
      const { action, organization, object, outcome = 'done', updateId = null, details = {} } = event;
      const values = {
        action,
        organization: sql.fragment`${organization}::text`,
        object: sql.fragment`${object}`,
        outcome,
        updateId: sql.fragment`${updateId}::uuid`,
        details: sql.fragment`${detailsJson(details)}`,
      };
      return db.query(sql.command('audit_insert')`
        /* audit.insert */ ${auditInsertion(source, values, sql.fragment`(select 1) as one`)}`);
    },

    /**
     * Counts a read of secrets for the active update that was created with the same token in one of these stacks. Returns null if there is
     * none, or if its reads come from another address or program; the read is then a separate event. The lock makes a counted read visible
     * to the transaction that ends the update.
     */
    countSecretRead: async (
      source: AuditSource,
      read: {
        readonly stackIds: readonly string[];
        readonly organization: string;
        readonly object: string;
        readonly values: number;
        readonly names: readonly string[];
      },
    ): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(UpdateIdRow)`
        /* audit.countSecretRead */
        with active as materialized (
          select id, number from updates
          where token_id = ${source.tokenId}::uuid and requested_by is not distinct from ${source.userId}::uuid and status in ('not started', 'running')
            and stack_id = any (${sql.array([...read.stackIds], 'uuid')})),
        reader as (
          select id from updates
          where id = (select id from active order by number desc limit 1) and status in ('not started', 'running')
          for key share)
        insert into audit_secret_reads as r (update_id, organization, object, source, calls, read_values, names)
        select id, ${read.organization}, ${read.object}, ${JSON.stringify(source)}, 1, ${read.values},
          ${sql.array([...read.names], 'text')} from reader
        on conflict (update_id) do update set calls = r.calls + 1, read_values = r.read_values + excluded.read_values,
          names = case when excluded.names <@ r.names or cardinality(r.names) >= ${maxNames} then r.names
            else r.names || excluded.names end
        where (r.source::json ->> 'address', r.source::json ->> 'userAgent')
          is not distinct from (excluded.source::json ->> 'address', excluded.source::json ->> 'userAgent')
        returning update_id as "updateId"`);
      return row?.updateId ?? null;
    },

    /** Whether the promotion of this term, its last step, is in the server's log. */
    hasPromotion: (term: number) =>
      db.exists(sql.rows(Type.Object({}))`
        /* audit.hasPromotion */
        select 1 from audit_events where organization_id = ${serverId}::uuid and action = 'site.promote'
          and (details::json ->> 'term')::int = ${term} limit 1`),

    /** Turns counted reads into one event per update. Call this in the transaction that ends the updates. */
    closeSecretReads: (stackId: string) =>
      db.query(sql.nothing`
        /* audit.closeSecretReads */
        select close_secret_reads(array(
          select r.update_id from audit_secret_reads r join updates u on u.id = r.update_id where u.stack_id = ${stackId}))`),
  };
}
