import { Type } from 'typebox';
import { type Queryable, type Row, type SqlFragment, sql } from '../platform/db/sql.ts';
import { Nullable, Timestamp } from '../platform/schema/standard-schema.ts';
import { timeSliceBytes } from '../platform/slices/slices.ts';
import type { StackRef } from '../stacks/names.ts';
import { stackNamed } from '../stacks/stack-repository.ts';
import { isNoPreview, isPreview } from './preview-fragments.ts';
import type { UpdateKind, UpdateStatus } from './update-state.ts';

const Text = Nullable(Type.String());

const IdRow = Type.Object({ id: Type.String() });

/** The four texts are all null if together they exceed the requested size. */
const UpdateInfoRow = Type.Object({
  id: Type.String(),
  number: Type.Integer(),
  kind: Type.Unsafe<UpdateKind>(Type.String()),
  dryRun: Type.Boolean(),
  status: Type.Unsafe<UpdateStatus>(Type.String()),
  stackVersion: Nullable(Type.Integer()),
  baseStackVersion: Type.Integer(),
  message: Text,
  environment: Text,
  config: Text,
  resourceChanges: Text,
  /** Ids of entries that its journal lacked when it ended, e.g. `3-4, 7`. */
  missingEntries: Text,
  resourceCount: Nullable(Type.Integer()),
  /** The times when retention deleted the state of its version, and its events. */
  stateDeletedAt: Nullable(Timestamp),
  eventsDeletedAt: Nullable(Timestamp),
  createdAt: Timestamp,
  startedAt: Nullable(Timestamp),
  endedAt: Nullable(Timestamp),
});
export type UpdateInfoRow = Row<typeof UpdateInfoRow>;

const UpdateStatusRow = Type.Object({
  id: Type.String(),
  status: Type.Unsafe<UpdateStatus>(Type.String()),
  /** Stays false once all events are archived. */
  mayHaveEventRows: Type.Boolean(),
  hasDeletedEvents: Type.Boolean(),
});
const ConfigurationRow = Type.Object({
  updateId: Type.String(),
  /** Null if it exceeds the requested size. */
  config: Text,
  /** Null if it exceeds 1 MiB. */
  environment: Text,
});
export type ConfigurationRow = Row<typeof ConfigurationRow>;
const TextRow = Type.Object({ text: Type.String() });

/** A text supplied by the client, possibly large. */
export type UpdateText = 'message' | 'environment' | 'config' | 'resourceChanges';

/** `sent`: as the client sent the texts. `cli`: only what the CLI can read, see cli-texts.ts. */
export type TextForm = 'sent' | 'cli';

const textColumns: Readonly<Record<TextForm, Readonly<Record<UpdateText, SqlFragment>>>> = {
  sent: {
    message: sql.fragment`u.message`,
    environment: sql.fragment`u.environment`,
    config: sql.fragment`u.config`,
    resourceChanges: sql.fragment`u.resource_changes`,
  },
  cli: {
    message: sql.fragment`u.message`,
    environment: sql.fragment`coalesce(u.cli_environment, u.environment)`,
    config: sql.fragment`coalesce(u.cli_config, u.config)`,
    resourceChanges: sql.fragment`u.resource_changes`,
  },
};

export type ShownUpdates = 'all' | 'updates' | 'previews';

export interface HistoryView {
  readonly shown: ShownUpdates;
  readonly form: TextForm;
}

/** An update `u` that is no preview and did not end before its start. Histories show the others too, but they do not affect the stack. */
export const isEffective = sql.fragment`${isNoPreview} and (u.started_at is not null or u.ended_at is null)`;

const condition: Readonly<Record<ShownUpdates, SqlFragment>> = {
  all: sql.fragment`true`,
  updates: isNoPreview,
  previews: isPreview,
};

/** Skips the first `offset` of the `listed` updates `u`, newest first. An index-only scan counts them. */
function withoutFirst(offset: number, listed: SqlFragment): SqlFragment {
  if (offset === 0) return sql.fragment``;
  return sql.fragment`and u.number <= (select u.number from updates u where ${listed} order by u.number desc limit 1 offset ${offset})`;
}

/** Size of a row without its texts, in bytes. */
const rowBytes = 500;

export type HistoryRepository = ReturnType<typeof createHistoryRepository>;

export function createHistoryRepository(db: Queryable, form: TextForm = 'sent') {
  const texts = textColumns[form];
  const columns = sql.fragment`
    u.id, u.number, u.kind, u.dry_run, u.status, u.stack_version, u.base_stack_version, u.message, ${texts.environment} as environment,
    ${texts.config} as config, u.resource_changes, u.missing_entries, u.checkpoint_id, u.state_deleted_at, u.events_deleted_at, u.created_at, u.started_at, u.ended_at,
    octet_length(u.message) + octet_length(${texts.environment}) + octet_length(${texts.config}) + octet_length(u.resource_changes)
      + ${rowBytes}::integer as bytes`;
  const shown = (maxBytes: number) => sql.fragment`
    m.id, m.number, m.kind, m.dry_run as "dryRun", m.status, m.stack_version as "stackVersion",
    m.base_stack_version as "baseStackVersion", case when m.bytes <= ${maxBytes} then m.message end as message,
    case when m.bytes <= ${maxBytes} then m.environment end as environment,
    case when m.bytes <= ${maxBytes} then m.config end as config,
    case when m.bytes <= ${maxBytes} then m.resource_changes end as "resourceChanges",
    m.missing_entries as "missingEntries",
    (select c.resource_count from checkpoints c where c.id = m.checkpoint_id) as "resourceCount",
    m.state_deleted_at as "stateDeletedAt", m.events_deleted_at as "eventsDeletedAt", m.created_at as "createdAt", m.started_at as "startedAt", m.ended_at as "endedAt"`;
  const inStack = (id: string, ref: StackRef) => sql.fragment`
    u.id = ${id} and exists (
      select 1 from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
      where s.id = u.stack_id and o.name = ${ref.organization} and p.name = ${ref.project} and s.name = ${ref.stack}
        and s.deleted_at is null)`;

  return {
    /**
     * Newest first, without the first `offset`. Returns as many as `limit` and `maxBytes` allow, but at least one. Texts of an update above
     * `wholeBytes` are null.
     */
    list: (
      stackId: string,
      { before, offset, shown: kinds }: { before: number | null; offset: number; shown: ShownUpdates },
      { limit, maxBytes, wholeBytes }: { limit: number; maxBytes: number; wholeBytes: number },
    ) => {
      const listed = sql.fragment`
        u.stack_id = ${stackId} and ${condition[kinds]} and (${before}::bigint is null or u.number < ${before}::bigint)`;
      return db.any(sql.rows(UpdateInfoRow)`
        /* history.list */ select ${shown(wholeBytes)}
        from (
          select *, sum(bytes) over (order by number desc) as total
          from (select ${columns} from updates u where ${listed} ${withoutFirst(offset, listed)} order by u.number desc limit ${limit}) next
        ) m
        where m.total <= ${maxBytes} or m.total = m.bytes
        order by m.number desc`);
    },

    listPreviewIds: (stackId: string, { limit, offset }: { limit: number; offset: number }) => {
      const listed = sql.fragment`u.stack_id = ${stackId} and ${isPreview}`;
      return db.any(sql.rows(IdRow)`
        /* history.listPreviewIds */
        select u.id from updates u where ${listed} ${withoutFirst(offset, listed)} order by u.number desc limit ${limit}`);
    },

    /**
     * Finds the configuration of the newest update that may have deployed it. Skips imports and renames, which keep the configuration,
     * except those from another backend that have their own.
     */
    findConfiguration: (stackId: string, maxBytes: number) =>
      db.maybeOne(sql.rows(ConfigurationRow)`
        /* history.findConfiguration */
        select u.id as "updateId",
          case when octet_length(${texts.config}) <= ${maxBytes} then ${texts.config} end as config,
          case when octet_length(${texts.environment}) <= ${timeSliceBytes} then ${texts.environment} end as environment
        from updates u
        where u.stack_id = ${stackId} and ${isEffective} and (u.kind not in ('import', 'rename') or u.config <> '{}')
        order by u.number desc limit 1`),

    find: (id: string, ref: StackRef, maxBytes: number) =>
      db.maybeOne(sql.rows(UpdateInfoRow)`
        /* history.find */ select ${shown(maxBytes)}
        from (select ${columns} from updates u where ${inStack(id, ref)}) m`),

    findStatus: (id: string, ref: StackRef) =>
      db.maybeOne(sql.prepared('history_find_status', UpdateStatusRow)`
        /* history.findStatus */ select u.id, u.status, not u.events_archived as "mayHaveEventRows",
          u.events_deleted_at is not null as "hasDeletedEvents" from updates u where ${inStack(id, ref)}`),

    /** Finds the update of the stack that had this id at the backend from which it was imported. */
    findImported: async (id: string, ref: StackRef): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* history.findImported */
        select u.id from (
          select i.update_id from imported_versions i where i.entry = ${id}
          union all
          select i.update_id from imported_previews i join stacks s on s.id = i.stack_id join projects p on p.id = s.project_id
            join organizations o on o.id = p.organization_id
          where ${stackNamed(ref)} and i.entry = ${id}) i
        join updates u on u.id = i.update_id join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id
          join organizations o on o.id = p.organization_id
        where ${stackNamed(ref)} limit 1`);
      return row?.id ?? null;
    },

    findVersionStatus: (stackVersion: number, ref: StackRef) =>
      db.maybeOne(sql.rows(UpdateStatusRow)`
        /* history.findVersionStatus */
        select u.id, u.status, not u.events_archived as "mayHaveEventRows", u.events_deleted_at is not null as "hasDeletedEvents"
        from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id join updates u on u.stack_id = s.id
        where o.name = ${ref.organization} and p.name = ${ref.project} and s.name = ${ref.stack} and s.deleted_at is null
          and u.stack_version = ${stackVersion}`),

    /** `from` is 1-based. */
    readText: async (id: string, text: UpdateText, from: number, chars: number): Promise<string> => {
      const row = await db.maybeOne(sql.rows(TextRow)`
        /* history.readText */ select substr(${texts[text]}, ${from}, ${chars}) as text from updates u where u.id = ${id}`);
      return row?.text ?? '';
    },
  };
}
