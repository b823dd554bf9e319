import { type SqlFragment, sql } from '../../../shared/platform/db/sql.ts';
import { idTypes, type TableCheck } from './table-check-repository.ts';

export const organizationChecks: readonly TableCheck[] = [
  {
    name: 'organizations',
    from: sql.fragment`organizations o`,
    id: sql.fragment`o.id`,
    idType: idTypes.uuid,
    object: sql.fragment`o.name`,
    problems: [
      {
        kind: 'organization-rows',
        when: sql.fragment`not exists (select 1 from organization_access a where a.organization_id = o.id)
          or not exists (select 1 from policy_groups g where g.organization_id = o.id and g.is_default)`,
        repair: (id) => [
          sql.fragment`insert into organization_access (organization_id) values (${id}::uuid) on conflict do nothing`,
          sql.fragment`insert into policy_groups (organization_id, name, is_default)
            select ${id}::uuid, 'default-policy-group', true
            where not exists (select 1 from policy_groups g where g.organization_id = ${id}::uuid and g.is_default)
            on conflict (organization_id, name) do update set is_default = true`,
        ],
      },
    ],
  },
  {
    name: 'policy packs',
    from: sql.fragment`policy_packs k join organizations o on o.id = k.organization_id`,
    id: sql.fragment`k.id`,
    idType: idTypes.uuid,
    object: sql.fragment`o.name || '/' || k.name`,
    problems: [
      {
        kind: 'pack-version',
        when: sql.fragment`k.last_version < (select max(v.version) from policy_pack_versions v where v.pack_id = k.id)`,
        repair: (id) => [
          sql.fragment`update policy_packs k
            set last_version = greatest(k.last_version, (select max(v.version) from policy_pack_versions v where v.pack_id = k.id))
            where k.id = ${id}::uuid`,
        ],
      },
      {
        kind: 'policy-group',
        when: sql.fragment`exists (
          select 1 from policy_group_packs g join policy_pack_versions v on v.id = g.version_id
          where g.pack_id = k.id and (v.pack_id <> k.id or v.published_at is null or v.removed_at is not null))`,
      },
    ],
  },
  {
    name: 'grants',
    from: sql.fragment`grants g left join roles r on r.id = g.role_id`,
    id: sql.fragment`g.id`,
    idType: idTypes.uuid,
    object: sql.fragment`'grant ' || g.id`,
    problems: [
      {
        kind: 'grant-role',
        when: sql.fragment`g.permissions <> coalesce(r.permissions, role_permissions(g.built_in_role))
          and num_nonnulls(g.role_id, g.built_in_role) = 1`,
        // A trigger copies the permissions of the role.
        repair: (id) => [sql.fragment`update grants set permissions = permissions where id = ${id}::uuid`],
      },
    ],
  },
  {
    name: 'tokens of CI runs',
    from: sql.fragment`(select * from api_tokens where policy_id is not null) t`,
    id: sql.fragment`t.id`,
    idType: idTypes.uuid,
    object: sql.fragment`'token ' || t.id`,
    problems: [
      {
        kind: 'token-policy',
        when: sql.fragment`t.revoked_at is null and (t.expires_at is null or t.expires_at > now())
          and not exists (select 1 from trust_policies p where p.id = t.policy_id)`,
        repair: (id) => [
          sql.fragment`update api_tokens t set revoked_at = now() where t.id = ${id}::uuid and t.revoked_at is null
            and not exists (select 1 from trust_policies p where p.id = t.policy_id)`,
        ],
      },
    ],
  },
  {
    name: 'data keys with their master keys',
    from: sql.fragment`encryption_keys k left join stacks s on s.id = k.stack_id`,
    id: sql.fragment`k.id`,
    idType: idTypes.uuid,
    object: sql.fragment`coalesce('stack ' || s.id, 'objects') || ', version ' || k.version || ': master key ' || k.master_key_id`,
    problems: [
      {
        kind: 'key-unknown',
        when: sql.fragment`not exists (select 1 from master_keys m where m.id = k.master_key_id)`,
      },
    ],
  },
];

/** Day counters and refused runs outlive their stacks, but not their organizations. */
function ofOrganization(
  table: 'stack_days' | 'project_days' | 'project_day_deliveries' | 'refused_runs',
  from: SqlFragment,
): TableCheck {
  const without = sql.fragment`not exists (select 1 from organizations o where o.id = r.organization_id)`;
  return {
    name: `organizations in ${table}`,
    from: sql.fragment`(select distinct organization_id from ${from}) r`,
    id: sql.fragment`r.organization_id`,
    idType: idTypes.uuid,
    object: sql.fragment`${`rows of ${table} of organization `}::text || r.organization_id`,
    problems: [
      {
        kind: 'orphan',
        when: without,
        repair: (id) => [
          sql.fragment`delete from ${from} where organization_id = ${id}::uuid
            and not exists (select 1 from organizations where id = ${id}::uuid)`,
        ],
      },
    ],
  };
}

/** Counters of organizations that are gone. */
export const counterChecks: readonly TableCheck[] = [
  ofOrganization('stack_days', sql.fragment`stack_days`),
  ofOrganization('project_days', sql.fragment`project_days`),
  ofOrganization('project_day_deliveries', sql.fragment`project_day_deliveries`),
  ofOrganization('refused_runs', sql.fragment`refused_runs`),
];
