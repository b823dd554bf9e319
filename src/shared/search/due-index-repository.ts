import { Type } from 'typebox';
import { type Queryable, type Row, type SqlFragment, sql } from '../platform/db/sql.ts';
import { type ListedOrganization, unnested } from '../stacks/stack-list-repository.ts';

const DueRow = Type.Object({ stackId: Type.String(), isBacklog: Type.Boolean() });
export type DueStack = Row<typeof DueRow>;

const UnindexedRow = Type.Object({
  stackId: Type.String(),
  /** Changes when the stack becomes due again. */
  notedAt: Type.String(),
  /** Something was saved since a worker began to index the stack, so that it becomes due again, or the clock was set back. */
  isNotedAgain: Type.Boolean(),
  /** Indexing has failed and is tried again later. */
  isFailing: Type.Boolean(),
  /** The time of the listing. */
  now: Type.String(),
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  tags: Type.String(),
});
/** A stack whose newest state is not indexed. */
export type UnindexedStack = Row<typeof UnindexedRow>;

/** The lag counts at most this many stacks. */
const maxDue = 10_000;
/** The limit when the caller's grants are compared; lower if there are many. */
const dueCompared = { least: 100, most: 1_000, factsChars: 2_000_000 };

const LagRow = Type.Object({
  /** Counts, up to a limit, stacks whose newest state is not indexed. */
  stacks: Type.Integer(),
  /** Since the first of these stacks changed. */
  oldestSeconds: Type.Integer(),
});
export type IndexLag = Row<typeof LagRow>;

const PageRow = Type.Object({ last: Type.String(), stacks: Type.Integer() });

const CountRow = Type.Object({ count: Type.Integer() });

/** Longer than a step usually takes. After it, another process may begin, and one of the two then writes nothing. */
export const indexClaimSeconds = 120;

/** The pause after a failed attempt. It doubles with each further failure, up to an hour. */
const retrySeconds = 30;

const maxRetrySeconds = 3600;

/** The pause after this many other failures. */
const retryPause = (failures: SqlFragment) =>
  sql.fragment`least(${maxRetrySeconds}::integer, ${retrySeconds}::integer * 2 ^ least(greatest(${failures}, 0), 10))`;

export type DueIndexRepository = ReturnType<typeof createDueIndexRepository>;

export function createDueIndexRepository(db: Queryable) {
  /** A time in the future is clipped. */
  const changesTime = sql.fragment`(d.is_noted_again or d.noted_at > clock_timestamp())`;
  return {
    /**
     * Stacks for which a call waits come first, then stacks with new commits. Commits must be at least `delaySeconds` old. Safe in any number of
     * processes. A claim counts as a failure until it is released, so that a stack that crashes the process has longer and longer claims.
     */
    claim: (options: {
      readonly claim: string;
      readonly claimSeconds: number;
      readonly delaySeconds: number;
      readonly limit: number;
      readonly withBacklog: boolean;
    }) =>
      db.any(sql.prepared('state_index_claim', DueRow)`
        /* stateIndex.claim */
        update state_index_due d set claim = ${options.claim}, is_noted_again = false, failures = d.failures + 1,
          claimed_until = clock_timestamp()
            + make_interval(secs => greatest(${options.claimSeconds}, ${retryPause(sql.fragment`d.failures`)}))
        from (
          select stack_id from state_index_due
          where (claimed_until is null or claimed_until < clock_timestamp())
            and noted_at <= clock_timestamp() - make_interval(secs => ${options.delaySeconds})
            and (not is_backlog or ${options.withBacklog})
          order by is_awaited desc, is_backlog, noted_at limit ${options.limit} for update skip locked
        ) next
        where d.stack_id = next.stack_id returning d.stack_id as "stackId", d.is_backlog as "isBacklog"`),

    /** Records whether a call waits for the indexes of due stacks, which then come first. Skips rows that are being written. */
    setAwaited: (stackIds: readonly string[], isAwaited: boolean) =>
      db.query(sql.nothing`
        /* stateIndex.setAwaited */
        update state_index_due set is_awaited = ${isAwaited} where stack_id in (
          select stack_id from state_index_due where stack_id = any (${sql.array([...stackIds], 'uuid')}) and is_awaited <> ${isAwaited}
          order by 1 for update skip locked)`),

    /** The stack is no longer due, unless a commit in between made it due again. */
    release: async (stackId: string, claim: string): Promise<void> => {
      await db.query(sql.command('state_index_release')`
        /* stateIndex.release */
        delete from state_index_due where stack_id = ${stackId} and claim = ${claim} and not is_noted_again`);
      await db.query(sql.command('state_index_release_again')`
        /* stateIndex.releaseAgain */
        update state_index_due set claim = null, claimed_until = null, is_noted_again = false, is_backlog = false, is_awaited = false, failures = 0,
          noted_at = clock_timestamp()
        where stack_id = ${stackId} and claim = ${claim}`);
    },

    /** After a failure: the stack is due again later, or after the next commit. */
    postpone: (stackId: string, claim: string) =>
      db.query(sql.nothing`
        /* stateIndex.postpone */
        update state_index_due set claim = null, is_noted_again = false, is_awaited = false, failures = case when is_noted_again then 0 else failures end,
          claimed_until = clock_timestamp() + make_interval(secs => case when is_noted_again then ${retrySeconds}::integer
            else ${retryPause(sql.fragment`failures - 1`)} end)
        where stack_id = ${stackId} and claim = ${claim}`),

    /** For a reason that does not concern the stack. */
    giveBack: async (stackId: string, claim: string): Promise<void> => {
      await db.query(sql.nothing`
        /* stateIndex.giveBack */
        update state_index_due set claim = null, is_noted_again = false, failures = greatest(failures - 1, 0),
          claimed_until = clock_timestamp() + make_interval(secs => ${retrySeconds}::integer)
        where stack_id = ${stackId} and claim = ${claim}`);
    },

    /** Ends waits that are too long because the clock was set back. Tolerates rows of the last moment. */
    clipWaits: async (): Promise<number> => {
      const { rowCount } = await db.query(sql.nothing`
        /* stateIndex.clipWaits */
        update state_index_due set noted_at = least(noted_at, now()),
          claimed_until = case when claimed_until is not null then least(claimed_until, now() + make_interval(secs => ${maxRetrySeconds})) end
        where noted_at > now() + interval '1 second' or claimed_until > now() + make_interval(secs => ${maxRetrySeconds + 1})`);
      return rowCount;
    },

    /** Even if the stack is not due, has failed, or is claimed by another process. */
    take: (stackId: string, claim: string, claimSeconds: number) =>
      db.query(sql.nothing`
        /* stateIndex.take */
        insert into state_index_due (stack_id, claim, claimed_until, failures)
        select id, ${claim}, clock_timestamp() + make_interval(secs => ${claimSeconds}), 1 from stacks
        where id = ${stackId} and deleted_at is null
        on conflict (stack_id) do update set claim = excluded.claim, claimed_until = excluded.claimed_until, is_noted_again = false,
          failures = state_index_due.failures + 1`),

    /**
     * Also marks the indexes as outdated: until it is rewritten, an outdated index shows its old content. Returns null if there are no more
     * stacks.
     */
    notePage: (after: string | null, limit: number) =>
      db.maybeOne(sql.rows(PageRow)`
        /* stateIndex.notePage */
        with page as (
          select id from stacks where (${after}::uuid is null or id > ${after}::uuid) and deleted_at is null and checkpoint_id is not null
          order by id limit ${limit}
        ),
        noted as (
          insert into state_index_due (stack_id, is_backlog) select id, true from page
          on conflict (stack_id) do update set is_noted_again = state_index_due.claim is not null
        ),
        outdated as (
          update state_indexes i set edition = edition + 1, version = null, is_ended = false, known_from = null
          from page where i.stack_id = page.id
        )
        select id as last, (select count(*)::integer from page) as stacks from page order by id desc limit 1`),

    /** Counts up to 10,000. */
    countDue: async (): Promise<number> => {
      const row = await db.one(sql.rows(CountRow)`
        /* stateIndex.countDue */
        select count(*)::integer as count from (select 1 from state_index_due limit 10000) due`);
      return row.count;
    },

    /**
     * Other stacks of the same organization. Stacks whose index is complete but outdated are omitted. `until` limits the list to states
     * saved up to then, and to stacks in `alsoOf`. Stacks that will be due again come first.
     */
    listUnindexed: (
      { id, organization }: { readonly id: string; readonly organization: string },
      {
        alsoOf,
        limit,
        until,
      }: { readonly alsoOf: readonly string[]; readonly limit: number; readonly until: string | null },
    ) =>
      db.any(sql.rows(UnindexedRow)`
        /* stateIndex.listUnindexed */
        select s.id as "stackId", d.noted_at::text as "notedAt", ${changesTime} as "isNotedAgain",
          d.failures > 0 and d.claim is null as "isFailing", clock_timestamp()::text as now,
          o.name as organization, p.name as project, s.name as stack, s.tags::text as tags
        from state_index_due d join stacks s on s.id = d.stack_id join projects p on p.id = s.project_id
          join organizations o on o.id = p.organization_id
        where o.name = ${organization} and s.id <> ${id} and s.deleted_at is null
          and not (d.is_backlog and exists (
            select 1 from state_indexes i where i.stack_id = s.id and i.checkpoint_id = s.checkpoint_id))
          and (${until}::timestamptz is null or d.noted_at <= ${until}::timestamptz or d.stack_id = any (${sql.array([...alsoOf], 'uuid')}))
        order by ${changesTime} desc, d.noted_at limit ${limit}`),

    /**
     * Null if the index shows the newest states of all stacks that the caller may read. If the index is so far behind that not all stacks
     * are compared, unreadable stacks count too: they reveal only that the index is being rebuilt.
     */
    readLag: async (organizations: readonly ListedOrganization[]): Promise<IndexLag | null> => {
      const ids = organizations.map(({ id }) => id);
      const factsChars = organizations.reduce((most, { facts }) => Math.max(most, facts?.length ?? 0), 0);
      const { least, most } = dueCompared;
      const compared = Math.max(least, Math.min(most, Math.floor(dueCompared.factsChars / factsChars)));
      const limit = factsChars === 0 ? maxDue : compared;
      const row = await db.one(sql.rows(LagRow)`
        /* stateIndex.readLag */
        select count(*)::integer as stacks,
          greatest(0, ceil(extract(epoch from clock_timestamp() - min(noted_at))))::integer as "oldestSeconds"
        from (
          select d.*, o.facts, count(*) over () = ${limit} as is_cut
          from (
            select d.noted_at, p.organization_id, p.name as project, s.name as stack
            from state_index_due d join stacks s on s.id = d.stack_id join projects p on p.id = s.project_id
            where p.organization_id = any (${sql.array(ids, 'uuid')}) and s.deleted_at is null
            order by d.noted_at limit ${limit}) d
          join ${unnested(organizations)} as o (id, name, facts) on o.id = d.organization_id) due
        where is_cut or facts is null or effective_permissions(facts, organization_id, project, stack) & 1 = 1`);
      return row.stacks === 0 ? null : row;
    },
  };
}
