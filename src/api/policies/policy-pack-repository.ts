import { Type } from 'typebox';
import { type Queryable, sql } from '../../shared/platform/db/sql.ts';
import { Nullable, Timestamp } from '../../shared/platform/schema/standard-schema.ts';

const PackRow = Type.Object({ id: Type.String(), lastVersion: Type.Integer() });

const VersionRow = Type.Object({
  id: Type.String(),
  packId: Type.String(),
  version: Type.Integer(),
  versionTag: Type.String(),
  displayName: Type.String(),
  /** JSON text. */
  description: Type.String(),
  begunBy: Nullable(Type.String()),
  /** The archive can no longer arrive. */
  isAbandoned: Type.Boolean(),
  begunAt: Timestamp,
  isUploaded: Type.Boolean(),
  isPublished: Type.Boolean(),
  isRemoved: Type.Boolean(),
});

const ListedRow = Type.Object({
  name: Type.String(),
  displayName: Type.String(),
  version: Type.Integer(),
  versionTag: Type.String(),
});
const PagedRow = Type.Object({
  name: Type.String(),
  /** The display name of the newest version. */
  displayName: Type.String(),
  versionCount: Type.Integer(),
  /** JSON text: number, tag and time of the newest `maxListedVersions`, the newest first. */
  versions: Type.String(),
  /** JSON text: name of the group and tag of the version, for at most `maxListedGroups`. */
  groups: Type.String(),
});

const maxListedVersions = 20;
const maxListedGroups = 20;

const ReferenceRow = Type.Object({
  /** The position of the reference, from 0. */
  at: Type.Integer(),
  packId: Type.String(),
  versionId: Type.String(),
  isUsable: Type.Boolean(),
});
const DescriptionRow = Type.Object({ description: Type.String() });

const RequiredRow = Type.Object({
  versionId: Type.String(),
  name: Type.String(),
  version: Type.Integer(),
  versionTag: Type.String(),
  displayName: Type.String(),
  /** JSON text. */
  config: Type.String(),
  now: Timestamp,
});
const BegunRow = Type.Object({ id: Type.String(), begunAt: Timestamp });
const NumberRow = Type.Object({ number: Type.Integer() });
const GroupNameRow = Type.Object({ name: Type.String() });

export interface NewPolicyVersion {
  readonly packId: string;
  readonly version: number;
  readonly versionTag: string;
  readonly displayName: string;
  readonly description: string;
  /** Null: the token belongs to no user. */
  readonly begunBy: string | null;
}

export type PolicyPackRepository = ReturnType<typeof createPolicyPackRepository>;

/** The archives are elsewhere. `uploadSeconds`: how long the archive of a version may take to arrive. */
export function createPolicyPackRepository(db: Queryable, uploadSeconds: number) {
  const columns = sql.fragment`
    v.id, v.pack_id as "packId", v.version, v.version_tag as "versionTag", v.display_name as "displayName", v.description,
    v.begun_by as "begunBy", v.begun_at as "begunAt",
    v.begun_at < now() - make_interval(secs => ${uploadSeconds}) as "isAbandoned",
    v.sha256 is not null as "isUploaded", v.published_at is not null as "isPublished", v.removed_at is not null as "isRemoved"`;

  return {
    /** The lock lasts until the transaction ends. */
    lockOrCreate: (organization: string, name: string) =>
      db.maybeOne(sql.rows(PackRow)`
        /* policyPacks.lockOrCreate */
        insert into policy_packs (organization_id, name)
        select id, ${name} from organizations where name = ${organization}
        on conflict (organization_id, name) do update set name = excluded.name
        returning id, last_version as "lastVersion"`),

    /** The lock lasts until the transaction ends. */
    lock: (organization: string, name: string) =>
      db.maybeOne(sql.rows(PackRow)`
        /* policyPacks.lock */
        select p.id, p.last_version as "lastVersion"
        from policy_packs p join organizations o on o.id = p.organization_id
        where o.name = ${organization} and p.name = ${name} for no key update of p`),

    /** Missing packs are ignored. */
    lockAll: (organization: string, names: readonly string[]) =>
      db.query(sql.nothing`
        /* policyPacks.lockAll */
        select 1 from policy_packs p join organizations o on o.id = p.organization_id
        where o.name = ${organization} and p.name = any(${sql.array(names, 'text')}) order by p.name for no key update of p`),

    /** The next number that is not the tag of a version. Call with the pack locked. */
    nextUntagged: async ({
      id,
      lastVersion,
    }: {
      readonly id: string;
      readonly lastVersion: number;
    }): Promise<number> => {
      const row = await db.one(sql.rows(NumberRow)`
        /* policyPacks.nextUntagged */
        select min(n)::integer as number
        from generate_series(${lastVersion}::bigint + 1, ${lastVersion} + 1 + (select count(*) from policy_pack_versions where pack_id = ${id})) n
        where not exists (select 1 from policy_pack_versions v where v.pack_id = ${id} and v.version_tag = n::text)`);
      return row.number;
    },

    /** Call with the pack locked. */
    insertVersion: (version: NewPolicyVersion) =>
      db.one(sql.rows(BegunRow)`
        /* policyPacks.insertVersion */
        with numbered as (update policy_packs set last_version = ${version.version} where id = ${version.packId} returning id)
        insert into policy_pack_versions (pack_id, version, version_tag, display_name, description, begun_by)
        select id, ${version.version}::integer, ${version.versionTag}, ${version.displayName}, ${version.description},
          ${version.begunBy}::uuid
        from numbered returning id, begun_at as "begunAt"`),

    /** The version with this tag, otherwise the one with this number. Includes unpublished versions. */
    findVersion: (organization: string, pack: string, tag: string) =>
      db.maybeOne(sql.rows(VersionRow)`
        /* policyPacks.findVersion */
        select ${columns}
        from policy_pack_versions v join policy_packs p on p.id = v.pack_id join organizations o on o.id = p.organization_id
        where o.name = ${organization} and p.name = ${pack} and (v.version_tag = ${tag} or v.version::text = ${tag})
        order by (v.version_tag = ${tag}) desc limit 1`),

    /** Found like `findVersion` and, without a tag, like `findNewest`. */
    findReferences: (
      organization: string,
      references: readonly { readonly name: string; readonly tag: string | null }[],
    ) =>
      db.any(sql.rows(ReferenceRow)`
        /* policyPacks.findReferences */
        select (r.at - 1)::integer as at, p.id as "packId", v.id as "versionId", v.published_at is not null and v.removed_at is null as "isUsable"
        from unnest(${sql.array(
          references.map(({ name }) => name),
          'text',
        )}, ${sql.array(
          references.map(({ tag }) => tag ?? ''),
          'text',
        )}) with ordinality as r (name, tag, at)
        join organizations o on o.name = ${organization} join policy_packs p on p.organization_id = o.id and p.name = r.name
        cross join lateral (
          select * from policy_pack_versions v
          where v.pack_id = p.id and case when r.tag = '' then v.published_at is not null and v.removed_at is null
            else v.version_tag = r.tag or v.version::text = r.tag end
          order by (v.version_tag = r.tag) desc, v.version desc limit 1) v`),

    /** JSON text; null if the version was removed. */
    findDescription: async (id: string): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(DescriptionRow)`
        /* policyPacks.findDescription */
        select description from policy_pack_versions where id = ${id} and removed_at is null`);
      return row?.description ?? null;
    },

    findVersionById: (id: string) =>
      db.maybeOne(sql.rows(VersionRow)`
        /* policyPacks.findVersionById */ select ${columns} from policy_pack_versions v where v.id = ${id}`),

    findOrganization: (versionId: string) =>
      db.maybeOne(sql.rows(GroupNameRow)`
        /* policyPacks.findOrganization */ select o.name from policy_pack_versions v join policy_packs p on p.id = v.pack_id
        join organizations o on o.id = p.organization_id where v.id = ${versionId}`),

    /** The newest version that clients can use. */
    findNewest: (organization: string, pack: string) =>
      db.maybeOne(sql.rows(VersionRow)`
        /* policyPacks.findNewest */
        select ${columns}
        from policy_pack_versions v join policy_packs p on p.id = v.pack_id join organizations o on o.id = p.organization_id
        where o.name = ${organization} and p.name = ${pack} and v.published_at is not null and v.removed_at is null
        order by v.version desc limit 1`),

    /** Clients can use these versions; by name and number. */
    list: (organization: string) =>
      db.any(sql.rows(ListedRow)`
        /* policyPacks.list */
        select p.name, v.display_name as "displayName", v.version, v.version_tag as "versionTag"
        from policy_pack_versions v join policy_packs p on p.id = v.pack_id join organizations o on o.id = p.organization_id
        where o.name = ${organization} and v.published_at is not null and v.removed_at is null
        order by p.name, v.version`),

    /** Packs with a version that clients can use, and the groups in which they are enabled. */
    listPage: (organization: string, after: string | null, limit: number) =>
      db.any(sql.rows(PagedRow)`
        /* policyPacks.listPage */
        with page as (
          select p.id, p.name from policy_packs p join organizations o on o.id = p.organization_id
          where o.name = ${organization} and (${after}::text is null or p.name > ${after}) and exists (
            select 1 from policy_pack_versions v where v.pack_id = p.id and v.published_at is not null and v.removed_at is null)
          order by p.name limit ${limit}
        )
        select p.name, n.display_name as "displayName", c.count as "versionCount", w.versions, g.groups
        from page p
        cross join lateral (
          select v.display_name from policy_pack_versions v
          where v.pack_id = p.id and v.published_at is not null and v.removed_at is null order by v.version desc limit 1) n
        cross join lateral (
          select count(*)::int as count from policy_pack_versions v
          where v.pack_id = p.id and v.published_at is not null and v.removed_at is null) c
        cross join lateral (
          select json_agg(json_build_object('version', v.version, 'tag', v.version_tag, 'publishedAt', v.published_at)
            order by v.version desc)::text as versions
          from (
            select * from policy_pack_versions v where v.pack_id = p.id and v.published_at is not null and v.removed_at is null
            order by v.version desc limit ${maxListedVersions}) v) w
        cross join lateral (
          select coalesce(json_agg(json_build_object('group', e.name, 'tag', e.version_tag) order by e.name), '[]')::text as groups
          from (
            select g.name, v.version_tag from policy_group_packs a join policy_groups g on g.id = a.group_id
            join policy_pack_versions v on v.id = a.version_id
            where a.pack_id = p.id order by g.name limit ${maxListedGroups}) e) g
        order by p.name`),

    /** The archive must have arrived. */
    publish: (id: string) =>
      db.query(sql.nothing`
        /* policyPacks.publish */
        update policy_pack_versions set published_at = now()
        where id = ${id} and published_at is null and sha256 is not null`),

    deleteUnpublished: (id: string) =>
      db.query(sql.nothing`
        /* policyPacks.deleteUnpublished */ delete from policy_pack_versions where id = ${id} and published_at is null`),

    /** Call with the pack locked. Also removes the archives. Returns the number of removed versions; `versionId` null: all. */
    remove: async (packId: string, versionId: string | null): Promise<number> => {
      const { rowCount } = await db.query(sql.nothing`
        /* policyPacks.remove */
        update policy_pack_versions set removed_at = now(), sha256 = null, size_bytes = null, stored_bytes = null, codec = null,
          inline_bytes = null, blob_key = null, damaged_at = null, description = '{}'
        where pack_id = ${packId} and (${versionId}::uuid is null or id = ${versionId}::uuid)
          and published_at is not null and removed_at is null`);
      return rowCount;
    },

    /** The pack, or one version of it, is enabled in these groups. */
    listGroupsUsing: async (packId: string, versionId: string | null): Promise<string[]> => {
      const rows = await db.any(sql.rows(GroupNameRow)`
        /* policyPacks.listGroupsUsing */
        select g.name from policy_group_packs a join policy_groups g on g.id = a.group_id
        where a.pack_id = ${packId} and (${versionId}::uuid is null or a.version_id = ${versionId}::uuid) order by g.name`);
      return rows.map(({ name }) => name);
    },

    /** The packs of the stack's groups, or of the default group if the stack is in none. */
    listRequired: (ref: { readonly organization: string; readonly project: string; readonly stack: string }) =>
      db.any(sql.prepared('policy_packs_list_required', RequiredRow)`
        /* policyPacks.listRequired */
        with stack as (
          select s.id, p.organization_id
          from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
          where o.name = ${ref.organization} and p.name = ${ref.project} and s.name = ${ref.stack} and s.deleted_at is null
        ),
        own as (select m.group_id from policy_group_stacks m join stack on stack.id = m.stack_id),
        applied as (
          select group_id from own
          union all
          select g.id from policy_groups g join stack on stack.organization_id = g.organization_id
          where g.is_default and not exists (select 1 from own)
        )
        select distinct v.id as "versionId", p.name, v.version, v.version_tag as "versionTag",
          v.display_name as "displayName", a.config, now() as now
        from applied join policy_group_packs a on a.group_id = applied.group_id
        join policy_pack_versions v on v.id = a.version_id join policy_packs p on p.id = v.pack_id
        order by p.name, v.version, a.config`),
  };
}
