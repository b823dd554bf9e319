import { Type } from 'typebox';
import {
  type AuditSelection,
  auditColumns,
  isInSelection,
  ListedRow,
} from '../../shared/audit/audit-list-repository.ts';
import { type Queryable, sql } from '../../shared/platform/db/sql.ts';

const FoundRow = Type.Object({
  ...ListedRow.properties,
  /** False for the last scanned event if it does not match. */
  isFound: Type.Boolean(),
  /** Whether this is the last scanned event. There may be more after it. */
  isLast: Type.Boolean(),
});

/** Null: any. */
export interface AuditSearch extends AuditSelection {
  /** Part of the object, in any case. */
  readonly object: string | null;
  readonly outcome: string | null;
}

/** Filters without an index: the action in addition to the login; and operators and the server, who have few events. */
function scanned({ action, actor, login, object, outcome }: AuditSearch) {
  return { object, outcome, action: login === null ? null : action, actor: actor === 'user' ? null : actor };
}

export function isScan(search: AuditSearch): boolean {
  return Object.values(scanned(search)).some((filter) => filter !== null);
}

function indexed(search: AuditSearch): AuditSelection {
  const { action, actor } = scanned(search);
  return { ...search, ...(action === null ? {} : { action: null }), ...(actor === null ? {} : { actor: null }) };
}

export function createAuditSearchRepository(db: Queryable) {
  const isMatch = (search: AuditSearch) => {
    const { action, actor, object, outcome } = scanned(search);
    const everything = sql.fragment`true`;
    return sql.fragment`${object === null ? everything : sql.fragment`strpos(lower(object), lower(${object})) > 0`}
      and ${outcome === null ? everything : sql.fragment`outcome = ${outcome}`}
      and ${action === null ? everything : sql.fragment`action = ${action}`}
      and ${actor === null ? everything : sql.fragment`actor = ${actor}`}`;
  };
  return {
    /**
     * The newest events come first. At most `maxRead` events are scanned for filters that are not a range of an index: see `isScan`. If
     * there are more, the result includes the last scanned event even if it does not match.
     */
    find: (
      organizationId: string,
      search: AuditSearch,
      { limit, maxRead }: { readonly limit: number; readonly maxRead: number },
    ) =>
      db.any(sql.rows(FoundRow)`
        /* audit.find */
        with looked as materialized (
          select number, occurred_at, row_number() over (order by occurred_at desc, number desc) as rank, ${isMatch(search)} as "isFound"
          from (
            select number, occurred_at, object, outcome, actor, action from audit_events
            where organization_id = ${organizationId}
              and ${isInSelection(indexed(search))}
            order by occurred_at desc, number desc limit ${maxRead}) read
        ), chosen as (
          (select * from looked where "isFound" order by rank limit ${limit}) union select * from looked where rank = ${maxRead})
        select ${auditColumns}, chosen."isFound", chosen.rank = ${maxRead} as "isLast"
        from chosen join lateral (
          select * from audit_events e
          where e.organization_id = ${organizationId} and e.occurred_at = chosen.occurred_at and e.number = chosen.number) event on true
        order by event.occurred_at desc, event.number desc`),
  };
}
