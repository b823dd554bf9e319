import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../../shared/platform/db/sql.ts';
import { isPreview } from '../../../shared/updates/preview-fragments.ts';

const WatchedRow = Type.Object({
  organizationId: Type.String(),
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  isPreview: Type.Boolean(),
  /** Former names of the stack, as a JSON list. */
  formerNames: Type.String(),
});
export type WatchedUpdate = Row<typeof WatchedRow>;

const LossRow = Type.Object({ names: Type.String(), isUnknown: Type.Boolean() });

export interface RemovedOutputs {
  readonly names: readonly string[];
  /** The events could not be read when the update ended, or no rule asked for it. There may be more outputs than the names. */
  readonly isUnknown: boolean;
}

const searchedPreviews = 200;

interface PreviewedUpdate {
  readonly stackId: string;
  readonly stackVersion: number;
  /** Hexadecimal; null if unknown: the newest preview of the same version by the same user or token then counts. */
  readonly commit: string | null;
  readonly userId: string | null;
  readonly tokenId: string;
}

export function createOutputLossRepository(db: Queryable) {
  return {
    /** Null unless the update may remove outputs of a stack with a rule of kind `consumers`. */
    findWatched: (updateId: string) =>
      db.maybeOne(sql.prepared('output_losses_watched', WatchedRow)`
        /* outputLosses.findWatched */
        select o.id as "organizationId", o.name as organization, p.name as project, s.name as stack,
          ${isPreview} as "isPreview", coalesce((
            select json_agg(json_build_object('project', f.project_name, 'stack', f.stack_name)) from former_stack_names f where f.stack_id = s.id
          ), '[]')::text as "formerNames"
        from updates u join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
        where u.id = ${updateId} and u.kind in ('update', 'preview') and exists (
          select 1 from update_rules r
          where r.organization_id = o.id and r.kind = 'consumers' and (r.project is null or r.project = p.name)
            and (r.stack is null or r.stack = s.name) and (r.tag_name is null or s.tags::jsonb ->> r.tag_name = r.tag_value))`),

    insert: (updateId: string, { isUnknown, names }: RemovedOutputs) =>
      db.query(sql.nothing`
        /* outputLosses.insert */
        insert into output_losses (update_id, names, is_unknown) values (${updateId}, ${JSON.stringify(names)}, ${isUnknown})
        on conflict (update_id) do nothing`),

    find: async (updateId: string): Promise<RemovedOutputs | null> =>
      lossOf(
        await db.maybeOne(sql.rows(LossRow)`
          /* outputLosses.find */ select names, is_unknown as "isUnknown" from output_losses where update_id = ${updateId}`),
      ),

    /**
     * Outputs that the newest preview that counts would remove, without those that a later update has already removed. Unknown for a
     * preview from before the rule.
     */
    findPreviewed: async (update: PreviewedUpdate): Promise<RemovedOutputs | null> =>
      lossOf(
        await db.maybeOne(sql.rows(LossRow)`
          /* outputLosses.findPreviewed */
          select coalesce(l.names::jsonb - array(
              select jsonb_array_elements_text(g.names::jsonb) from updates u join output_losses g on g.update_id = u.id
              where u.stack_id = ${update.stackId} and u.number > p.number and u.kind = 'update' and not u.dry_run), '[]')::text as names,
            coalesce(l.is_unknown, true) as "isUnknown"
          from (
            select id, number, status, kind, base_stack_version, commit_id, requested_by, token_id from updates
            where stack_id = ${update.stackId} and (dry_run or kind = 'preview') order by number desc limit ${searchedPreviews}) p
          left join output_losses l on l.update_id = p.id
          where p.status = 'succeeded' and p.kind in ('update', 'preview')
            -- An imported one says nothing about outputs.
            and not exists (select 1 from imported_previews i where i.update_id = p.id) and ${
              update.commit === null
                ? sql.fragment`p.base_stack_version = ${update.stackVersion}
                and (p.requested_by = ${update.userId}::uuid or p.token_id = ${update.tokenId}::uuid)`
                : sql.fragment`p.commit_id = ${update.commit}`
            }
          order by p.number desc limit 1`),
      ),
  };
}

function lossOf(row: Row<typeof LossRow> | null): RemovedOutputs | null {
  const names = row ? (JSON.parse(row.names) as string[]) : [];
  const isUnknown = row?.isUnknown ?? false;
  return names.length > 0 || isUnknown ? { names, isUnknown } : null;
}
