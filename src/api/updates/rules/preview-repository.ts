import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../../shared/platform/db/sql.ts';

const PreviewRow = Type.Object({
  id: Type.String(),
  /** The stack version that the preview started from. */
  stackVersion: Type.Integer(),
});
export type PreviewRow = Row<typeof PreviewRow>;

const searchedPreviews = 1_000;

export interface PreviewSearch {
  readonly stackId: string;
  readonly kind: string;
  /** Hexadecimal. */
  readonly commit: string;
  /** Previews with which runs of updates begin count, too. */
  readonly countsOwn: boolean;
}

export function createPreviewRepository(db: Queryable) {
  return {
    /**
     * The newest preview of the commit that succeeded here, without local changes. Imported previews, and previews whose events are
     * deleted, do not count. The environment is JSON without spaces, so a quoted name before a colon is a member.
     */
    findNewest: ({ commit, countsOwn, kind, stackId }: PreviewSearch): Promise<PreviewRow | null> =>
      db.maybeOne(sql.rows(PreviewRow)`
        /* previews.findNewest */
        select p.id, p.base_stack_version as "stackVersion"
        from (
          select id, kind, number, status, base_stack_version, commit_id, environment, events_deleted_at from updates
          where stack_id = ${stackId} and (dry_run or kind = 'preview') order by number desc limit ${searchedPreviews}) p
        where p.status = 'succeeded' and p.events_deleted_at is null and (p.kind = ${kind} or (p.kind = 'preview' and ${kind} = 'update'))
          and p.commit_id = ${commit} and not exists (select 1 from imported_previews i where i.update_id = p.id)
          and position('"git.dirty":"true"' in p.environment) = 0
          and (${countsOwn} or p.kind = 'preview' or position('"pulumi.flag.preview-only":"true"' in p.environment) > 0)
        order by p.number desc limit 1`),
  };
}
