import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';

const SetupRow = Type.Object({
  /** Other members, or open invitations. */
  hasPeople: Type.Boolean(),
  /** A policy that lets CI runs in without a stored token. */
  hasTrust: Type.Boolean(),
  hasRules: Type.Boolean(),
  /** An update has succeeded in one of its stacks. */
  hasUpdated: Type.Boolean(),
});
export type SetupRow = Row<typeof SetupRow>;

export function createSetupRepository(db: Queryable) {
  return {
    find: (organization: string) =>
      db.maybeOne(sql.rows(SetupRow)`
        /* setup.find */
        select (select count(*) from (select 1 from memberships m where m.organization_id = o.id limit 2) m) > 1
            or exists (select 1 from invitations i where i.organization_id = o.id and i.expires_at > now()) as "hasPeople",
          exists (
            select 1 from trusted_issuers t join trust_policies p on p.issuer_id = t.id
            where t.organization_id = o.id and p.decision = 'allow') as "hasTrust",
          exists (select 1 from update_rules r where r.organization_id = o.id) as "hasRules",
          exists (
            select 1 from stack_days d where d.organization_id = o.id and d.runs > d.failed + d.cancelled) as "hasUpdated"
        from organizations o where o.name = ${organization}`),
  };
}
