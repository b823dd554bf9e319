import { type Queryable, sql } from '../platform/db/sql.ts';
import type { ResourceFacts } from './resource-facts.ts';

export type ChangeKind = 'created' | 'updated' | 'replaced' | 'deleted';

export interface ResourceChange {
  readonly key: string;
  readonly urn: string;
  readonly type: string;
  readonly change: ChangeKind;
  /** Null if the resources were not compared. */
  readonly paths: readonly string[] | null;
  readonly pathCount: number;
}

/** Generated while they are read, a few hundred at a time. Can be read repeatedly. */
export interface Batches<T> {
  batches(): Iterable<readonly T[]>;
}

export interface VersionChanges extends Batches<ResourceChange> {
  readonly counts: Readonly<Record<ChangeKind, number>>;
}

interface VersionToIndex {
  readonly version: number;
  readonly resourceCount: number;
  readonly changes: VersionChanges;
}

const rowsPerStatement = 1_000;

export async function writeResources(
  db: Queryable,
  stackId: string,
  { removed, written }: { readonly removed: readonly string[]; readonly written: Batches<ResourceFacts> },
): Promise<void> {
  for (const rows of written.batches()) for (const batch of slices(rows)) await insertRows(db, stackId, batch);
  for (const keys of slices(removed))
    await db.query(sql.nothing`
      /* stateIndex.deleteRows */
      delete from stack_resources where stack_id = ${stackId} and key = any (${sql.array(keys, 'text')})`);
}

async function insertRows(db: Queryable, stackId: string, rows: readonly ResourceFacts[]): Promise<void> {
  const values = rows.map((row) => [
    ...[row.key, row.digest, row.urn, row.type, row.name, row.place, row.parent, row.provider, row.providerVersion],
    row.dependencies.join(','),
    ...[row.isCustom, row.isExternal, row.isProtected, row.deletesFirst, row.isDeleted],
    ...[row.inputsHash, row.outputsHash, row.reads],
  ]);
  const types = [...Array<'text'>(10).fill('text'), ...Array<'bool'>(5).fill('bool'), 'text', 'text', 'text'] as const;
  await db.query(sql.command('state_index_insert_rows')`
    /* stateIndex.insertRows */
    insert into stack_resources (stack_id, key, digest, urn, type, name, place, parent, provider, provider_version, dependencies,
      is_custom, is_external, is_protected, deletes_first, is_deleted, inputs_hash, outputs_hash, reads)
    select ${stackId}::uuid, n.key, digest, urn, type, name, place, parent, provider, provider_version, string_to_array(dependencies, ','),
      is_custom, is_external, is_protected, deletes_first, is_deleted, inputs_hash, outputs_hash, reads
    from ${sql.unnest(values, [...types])} as n (key, digest, urn, type, name, place, parent, provider, provider_version, dependencies,
      is_custom, is_external, is_protected, deletes_first, is_deleted, inputs_hash, outputs_hash, reads)
    on conflict (stack_id, key) do update set digest = excluded.digest, urn = excluded.urn, type = excluded.type, name = excluded.name,
      place = excluded.place, parent = excluded.parent, provider = excluded.provider, provider_version = excluded.provider_version,
      dependencies = excluded.dependencies, is_custom = excluded.is_custom, is_external = excluded.is_external,
      is_protected = excluded.is_protected, deletes_first = excluded.deletes_first, is_deleted = excluded.is_deleted,
      inputs_hash = excluded.inputs_hash, outputs_hash = excluded.outputs_hash, reads = excluded.reads`);
}

export async function replaceChanges(
  db: Queryable,
  stackId: string,
  { changes, resourceCount, version }: VersionToIndex,
): Promise<void> {
  await db.query(sql.command('state_index_forget_changes')`
    /* stateIndex.forgetChanges */ delete from version_changes where stack_id = ${stackId} and version = ${version}`);
  await db.query(sql.command('state_index_insert_version')`
    /* stateIndex.insertVersion */
    insert into version_changes (stack_id, version, created, updated, replaced, deleted, resource_count)
    values (${stackId}, ${version}, ${changes.counts.created}, ${changes.counts.updated}, ${changes.counts.replaced}, ${changes.counts.deleted}, ${resourceCount})`);
  for (const rows of changes.batches())
    for (const batch of slices(rows)) await insertChangesOf(db, stackId, version, batch);
}

async function insertChangesOf(
  db: Queryable,
  stackId: string,
  version: number,
  changes: readonly ResourceChange[],
): Promise<void> {
  const rows = changes.map(({ change, key, pathCount, paths, type, urn }) => [
    ...[key, urn, type, change],
    paths === null ? null : paths.join('\n'),
    pathCount,
  ]);
  await db.query(sql.command('state_index_insert_changes')`
    /* stateIndex.insertChanges */
    insert into resource_changes (stack_id, version, key, urn, type, change, paths, path_count)
    select ${stackId}::uuid, ${version}::integer, key, urn, type, change, string_to_array(paths, E'\n'), path_count
    from ${sql.unnest(rows, ['text', 'text', 'text', 'text', 'text', 'int4'])} as n (key, urn, type, change, paths, path_count)`);
}

function* slices<T>(rows: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < rows.length; at += rowsPerStatement) yield rows.slice(at, at + rowsPerStatement);
}
