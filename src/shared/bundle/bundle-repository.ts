import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { mayBeSent } from '../platform/outgoing/held-outgoing-repository.ts';
import { Nullable } from '../platform/schema/standard-schema.ts';

/** Every write of a worker requires the claim of this task. */
export const bundleTask = 'bundle';

/** For `key`, see BundleKey. */
const BundleRow = Type.Object({ location: Type.String(), key: Type.String() });
const KeysRow = Type.Object({ key: Type.String(), earlier: Type.Array(Type.String()) });

const address = { organization: Type.String(), project: Type.String(), stack: Type.String() };
const bundled = {
  stackVersion: Nullable(Type.Integer()),
  /** A version that was completed later has another checkpoint. Null if unknown. */
  checkpointId: Nullable(Type.String()),
  tags: Nullable(Type.String()),
  entry: Nullable(Type.String()),
  sha256: Nullable(Type.String()),
  attempts: Type.Array(Type.String()),
};
const BundledRow = Type.Object({ ...address, stackId: Type.String(), ...bundled, error: Nullable(Type.String()) });
export type BundledRow = Row<typeof BundledRow>;
export type BundleLocation = Pick<BundledRow, 'organization' | 'project' | 'stack'>;

const DueRow = Type.Object({
  ...address,
  stackId: Type.String(),
  changedAt: Type.String(),
  /** False if only unfinished writes must be checked. */
  isChanged: Type.Boolean(),
  /** Seconds since the change; null if the bundle lacks the stack, or nothing has changed. */
  waitedSeconds: Nullable(Type.Number()),
  /** The stack that the bundle has at this address. */
  bundledId: Nullable(Type.String()),
  ...bundled,
});
export type DueRow = Row<typeof DueRow>;

const LagRow = Type.Object({ stacks: Type.Integer(), seconds: Type.Integer(), errors: Type.Integer() });

const NameRow = Type.Object({ name: Type.String() });
const AddressRow = Type.Object(address);
const FoundRow = Type.Object({ stack: Type.String() });

/** A write is visible within this time after its beginning. */
const attemptSeconds = 1200;
const recheckSeconds = 60;
const retrySeconds = 30;
const maxRetrySeconds = 3600;
/** Changed stacks written for each missing one, so that a first fill of thousands delays no change. */
const changesFirst = 4;
const maxAttempts = 20;
const maxError = 500;
const maxEarlierKeys = 100;

export type BundleRepository = ReturnType<typeof createBundleRepository>;

export function createBundleRepository(db: Queryable) {
  const columns = sql.fragment`
    b.organization, b.project, b.stack, b.stack_id as "stackId", b.stack_version as "stackVersion",
    b.checkpoint_id as "checkpointId", b.tags, b.entry, b.sha256, b.attempts, b.error`;
  const kept = sql.fragment`
    organization, project, stack, stack_id, stack_version, checkpoint_id, changed_at, tags, entry, sha256, attempts, attempted_at`;
  const at = (where: BundleLocation) => sql.fragment`
    organization = ${where.organization} and project = ${where.project} and stack = ${where.stack}`;
  /** Another worker may have taken over the task. */
  const isHeld = (holder: string) => sql.fragment`
    exists (select 1 from maintenance_runs where name = ${bundleTask} and claimed_by = ${holder}::uuid)`;
  const live = sql.fragment`stack_changes c join organizations o on o.id = c.organization_id`;
  const sameAddress = sql.fragment`b.organization = o.name and b.project = c.project_name and b.stack = c.stack_name`;
  const isChanged = sql.fragment`(b.stack_id is distinct from c.stack_id or b.changed_at is distinct from c.changed_at)`;
  const isOutdated = sql.fragment`(b.stack_version is not null and ${isChanged})`;
  const isImported = sql.fragment`not exists (select 1 from stacks s where s.id = c.stack_id and s.import_unfinished)`;
  /** The bundle of a restored database may still belong to another one. A wait beyond the maximum is from before the clock was set back. */
  const isReady = sql.fragment`(${mayBeSent} and (b.postponed_until is null or b.postponed_until <= clock_timestamp()
    or b.postponed_until > clock_timestamp() + make_interval(secs => ${maxRetrySeconds})))`;

  return {
    find: () => db.maybeOne(sql.rows(BundleRow)`/* bundles.find */ select place as location, salt as key from bundles`),

    findKeys: () =>
      db.maybeOne(sql.rows(KeysRow)`
        /* bundles.findKeys */ select salt as key, earlier_keys as earlier from bundles`),

    /** Keeps the records of the stacks at the previous location for a return to it. With another key, all stacks are written again. */
    set: async (bundle: { readonly location: string; readonly key: string }): Promise<void> => {
      const before = await db.maybeOne(sql.rows(BundleRow)`
        /* bundles.lock */ select place as location, salt as key from bundles for update`);
      if (before?.location !== bundle.location) {
        await db.query(sql.nothing`
          /* leftBundledStacks.forget */ delete from left_bundled_stacks where place <> ${bundle.location}`);
        await db.query(sql.nothing`
          /* leftBundledStacks.keep */
          with gone as (delete from bundled_stacks returning ${kept})
          insert into left_bundled_stacks (organization_id, place, ${kept})
          select (select id from organizations where name = organization), ${before?.location ?? null}::text, ${kept} from gone
          where ${before !== null} and exists (select 1 from organizations where name = organization)`);
        await db.query(sql.nothing`
          /* leftBundledStacks.takeBack */
          with back as (delete from left_bundled_stacks where place = ${bundle.location} returning ${kept})
          insert into bundled_stacks (${kept}) select ${kept} from back`);
      }
      if (before?.key !== bundle.key)
        for (const table of [sql.fragment`bundled_stacks`, sql.fragment`left_bundled_stacks`])
          await db.query(sql.nothing`
            /* bundles.writeAgain */ update ${table} set stack_version = null, changed_at = null`);
      await db.query(sql.nothing`/* bundledStacks.tryAgain */ update bundled_stacks set postponed_until = null`);
      await db.query(sql.nothing`
        /* bundles.set */
        insert into bundles (place, salt) values (${bundle.location}, ${bundle.key})
        on conflict (is_only) do update set place = excluded.place, salt = excluded.salt,
          earlier_keys = case when bundles.salt = excluded.salt then bundles.earlier_keys
            else (bundles.earlier_keys || bundles.salt)[greatest(cardinality(bundles.earlier_keys) + 2 - ${maxEarlierKeys}::integer, 1):] end`);
    },

    forget: (organization: string) =>
      db.query(sql.nothing`
        /* bundledStacks.forget */ delete from bundled_stacks where organization = ${organization}`),

    listBundledOrganizations: async (): Promise<readonly string[]> => {
      const rows = await db.any(sql.rows(NameRow)`
        /* bundledStacks.listOrganizations */ select distinct organization as name from bundled_stacks order by 1`);
      return rows.map(({ name }) => name);
    },

    /**
     * Lists changed stacks and, between them, stacks that the bundle lacks or that have unfinished writes; the longest waiting first. Omits
     * stacks whose import has not ended, because updates of an old state could be made in the bundle.
     */
    listDue: (limit: number) =>
      db.any(sql.rows(DueRow)`
        /* bundledStacks.listDue */
        select o.name as organization, c.project_name as project, c.stack_name as stack, c.stack_id as "stackId",
          c.changed_at::text as "changedAt", ${isChanged} as "isChanged",
          case when ${isOutdated} then extract(epoch from clock_timestamp() - c.changed_at)::float8 end as "waitedSeconds",
          b.stack_id as "bundledId", b.stack_version as "stackVersion", b.checkpoint_id as "checkpointId", b.tags, b.entry, b.sha256,
          coalesce(b.attempts, '{}') as attempts
        from ${live} left join bundled_stacks b on ${sameAddress}
        where ${isReady} and (${isChanged} or (b.attempts <> '{}'
          and coalesce(b.checked_at, b.attempted_at) < clock_timestamp() - make_interval(secs => ${recheckSeconds})))
          and ${isImported}
        order by row_number() over (partition by ${isOutdated} order by c.changed_at)
          / case when ${isOutdated} then ${changesFirst}::float8 else 1 end, c.changed_at limit ${limit}`),

    /** Lists addresses without a stack, once the stack is at its new address. */
    listLeft: (limit: number) =>
      db.any(sql.rows(BundledRow)`
        /* bundledStacks.listLeft */
        select ${columns} from bundled_stacks b
        where ${isReady} and not exists (select 1 from ${live} where ${sameAddress})
          and not exists (
            select 1 from ${live} where c.stack_id = b.stack_id and not exists (
              select 1 from bundled_stacks n where n.organization = o.name and n.project = c.project_name and n.stack = c.stack_name
                and n.stack_id = c.stack_id and n.stack_version is not null))
        order by b.organization, b.project, b.stack limit ${limit}`),

    /** Sorts by address. */
    list: (organization: string | null = null) =>
      db.any(sql.rows(BundledRow)`
        /* bundledStacks.list */
        select ${columns} from bundled_stacks b
        where ${organization === null ? sql.fragment`true` : sql.fragment`b.organization = ${organization}`}
        order by b.organization, b.project, b.stack`),

    listOrganizations: async (): Promise<readonly string[]> => {
      const rows = await db.any(sql.rows(NameRow)`
        /* bundles.listOrganizations */ select name from organizations order by name`);
      return rows.map(({ name }) => name);
    },

    /** Called before files are written. Returns false if another worker has taken over. */
    begin: async (
      where: BundleLocation,
      write: { stackId: string; mark: string; holder: string },
    ): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(FoundRow)`
        /* bundledStacks.begin */
        insert into bundled_stacks as b (organization, project, stack, stack_id, attempts, attempted_at)
        select ${where.organization}, ${where.project}, ${where.stack}, ${write.stackId}::uuid, array[${write.mark}::text], clock_timestamp()
        where ${isHeld(write.holder)}
        on conflict (organization, project, stack) do update
          set attempts = (array_append(b.attempts, ${write.mark}::text))[greatest(cardinality(b.attempts) + 2 - ${maxAttempts}::integer, 1):],
            attempted_at = excluded.attempted_at
        returning b.stack`);
      return row !== null;
    },

    /** Called when files were written. Returns false if another worker has taken over. */
    confirm: async (
      where: BundleLocation,
      holder: string,
      written: Pick<DueRow, 'stackId' | 'checkpointId' | 'changedAt' | 'tags' | 'entry' | 'sha256'> & {
        stackVersion: number;
        mark: string;
      },
    ): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(FoundRow)`
        /* bundledStacks.confirm */
        update bundled_stacks set stack_id = ${written.stackId}, stack_version = ${written.stackVersion}, checkpoint_id = ${written.checkpointId},
          changed_at = ${written.changedAt}::timestamptz, tags = ${written.tags}, entry = ${written.entry}, sha256 = ${written.sha256},
          attempts = array_remove(attempts, ${written.mark}::text), checked_at = clock_timestamp(), behind_since = null, failures = 0,
          postponed_until = null, error = null
        where ${at(where)} and ${isHeld(holder)} returning stack`);
      return row !== null;
    },

    /** Records a change that does not affect the bundled content. */
    pass: (where: BundleLocation, holder: string, changedAt: string) =>
      db.query(sql.nothing`
        /* bundledStacks.pass */
        update bundled_stacks set changed_at = ${changedAt}::timestamptz, behind_since = null, failures = 0, postponed_until = null, error = null
        where ${at(where)} and ${isHeld(holder)}`),

    /** Has the stack checked again: a worker that lost its claim may have left a file. */
    doubt: (where: BundleLocation) =>
      db.query(sql.nothing`/* bundledStacks.doubt */ update bundled_stacks set changed_at = null where ${at(where)}`),

    /** Records that the file is the confirmed one. Forgets old attempts. */
    settle: (where: BundleLocation) =>
      db.query(sql.nothing`
        /* bundledStacks.settle */
        update bundled_stacks set checked_at = clock_timestamp(),
          attempts = case when attempted_at < clock_timestamp() - make_interval(secs => ${attemptSeconds}) then '{}' else attempts end
        where ${at(where)}`),

    /** The stack waits twice as long each time, up to an hour. */
    postpone: (where: BundleLocation, failure: { stackId: string; changedAt: string | null; error: string }) =>
      db.query(sql.nothing`
        /* bundledStacks.postpone */
        insert into bundled_stacks as b (organization, project, stack, stack_id, behind_since, failures, postponed_until, error)
        values (${where.organization}, ${where.project}, ${where.stack}, ${failure.stackId}, ${failure.changedAt}::timestamptz, 1,
          clock_timestamp() + make_interval(secs => ${retrySeconds}), ${failure.error.replaceAll('\0', '').slice(0, maxError)})
        on conflict (organization, project, stack) do update set behind_since = coalesce(b.behind_since, excluded.behind_since),
          failures = b.failures + 1, error = excluded.error,
          postponed_until = clock_timestamp() + make_interval(secs => least(${maxRetrySeconds}::integer, ${retrySeconds}::integer * 2 ^ least(b.failures, 10)))`),

    delete: (where: BundleLocation, holder: string) =>
      db.query(sql.nothing`
        /* bundledStacks.delete */ delete from bundled_stacks where ${at(where)} and ${isHeld(holder)}`),

    /** The stack has the bundle's content up to `entry`, and all of it if `sha256` is known. The worker writes it again. */
    adopt: (
      where: BundleLocation,
      taken: { stackId: string; stackVersion: number; entry: string | null; sha256: string | null },
    ) =>
      db.query(sql.nothing`
        /* bundledStacks.adopt */
        insert into bundled_stacks as b (organization, project, stack, stack_id, stack_version, entry, sha256, checkpoint_id)
        values (${where.organization}, ${where.project}, ${where.stack}, ${taken.stackId}, ${taken.stackVersion}, ${taken.entry}, ${taken.sha256},
          (select s.checkpoint_id from stacks s where s.id = ${taken.stackId}))
        on conflict (organization, project, stack) do update set stack_id = excluded.stack_id, stack_version = excluded.stack_version,
          checkpoint_id = excluded.checkpoint_id, entry = coalesce(excluded.entry, b.entry), sha256 = coalesce(excluded.sha256, b.sha256), changed_at = null, tags = null,
          postponed_until = null, error = null`),

    /** Lists changed stacks that wait for the end of their import. */
    listUnfinishedImports: (limit: number) =>
      db.any(sql.rows(AddressRow)`
        /* bundledStacks.listUnfinishedImports */
        select o.name as organization, c.project_name as project, c.stack_name as stack
        from ${live} left join bundled_stacks b on ${sameAddress} where ${isChanged} and not ${isImported}
        order by 1, 2, 3 limit ${limit}`),

    /** The lag behind the stacks of `listDue`. */
    readLag: () =>
      db.one(sql.rows(LagRow)`
        /* bundledStacks.readLag */
        select count(*)::integer as stacks,
          greatest(0, ceil(extract(epoch from clock_timestamp() - min(coalesce(b.behind_since, c.changed_at)))))::integer as seconds,
          (select count(*)::integer from bundled_stacks where error is not null) as errors
        from ${live} left join bundled_stacks b on ${sameAddress} where ${isChanged} and ${isImported}`),
  };
}
